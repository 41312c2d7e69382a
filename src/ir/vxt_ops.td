// The vxt dialect: per-thread code all GPU targets share.
#ifndef VORTEX_IR_VXT_OPS
#define VORTEX_IR_VXT_OPS
include "ir/vx_dialect.td"
include "ir/vxt_enums.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

def Vxt_Dialect : Dialect {
  let name = "vxt";
  let cppNamespace = "::vortex::ir::vxt";
  let summary = "What one hardware thread of a block does";
  let description = [{
    A module holds `vxt.kernel` ops, one per phase. Bodies are `scf`, `arith`, `math`, `vx.int` and `vx.float_to_int` on scalars and rank-1
    vectors with static extents (`vector` dialect: `vector.extract`, `vector.insert`, `vector.extractelement`, `vector.insertelement`,
    `vector.splat`, `vector.broadcast` of scalars, `vector.from_elements`, `vector.bitcast`, `vector.shuffle`), plus the ops below.
    A hardware block is one-dimensional; warps are 32 consecutive threads. Memory is reached through pointers: `ptr[index]` is the address
    of element `index` (signless: `index`, or `i32` read as unsigned) of the accessed scalar type, where bool takes one byte and index eight.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::vortex::ir::VxDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
  let extraClassDeclaration = "void registerTypes();";
}

def Vxt_CacheAttr : EnumAttr<Vxt_Dialect, Vxt_Cache, "cache"> { let assemblyFormat = "$value"; }

def Vxt_Ptr : TypeDef<Vxt_Dialect, "Ptr"> {
  let mnemonic = "ptr";
  let summary = "untyped address in a memory space: `!vxt.ptr<shared>`";
  let parameters = (ins EnumParameter<Vx_Space>:$space);
  let assemblyFormat = "`<` $space `>`";
}

def Vxt_Fragment : TypeDef<Vxt_Dialect, "Fragment"> {
  let mnemonic = "fragment";
  let summary = "8 × 8 elements that a warp holds: `!vxt.fragment<f32>`; which lane holds which is not said";
  let parameters = (ins "::mlir::Type":$elementType);
  let assemblyFormat = "`<` $elementType `>`";
  let genVerifyDecl = 1;
}

class Vxt_Op<string mnemonic, list<Trait> traits = []> : Op<Vxt_Dialect, mnemonic, traits>;

def Vxt_Scalar : AnyTypeOf<[AnySignlessInteger, AnyFloat, Index], "scalar">;
def Vxt_Vector : Type<CPred<"::llvm::isa<::mlir::VectorType>($_self) && ::llvm::cast<::mlir::VectorType>($_self).getRank() == 1">,
                      "rank-1 vector", "::mlir::VectorType">;
def Vxt_Value : AnyTypeOf<[AnySignlessInteger, AnyFloat, Index, Vxt_Vector], "scalar or rank-1 vector">;
def Vxt_Index : AnyTypeOf<[Index, I32], "index or i32">;

//===-- structure ---------------------------------------------------------------------------------------------===//

def Vxt_KernelOp : Vxt_Op<"kernel", [FunctionOpInterface, IsolatedFromAbove, AutomaticAllocationScope]> {
  let summary = "one phase: the entry point every hardware thread runs";
  let description = [{
    Arguments are the launch slots in order, one each: per tensor a `!vxt.ptr<global>`, its extents, its strides (`index`), and scalars.
    `threads`: hardware threads of a block (#vx.size), at most 1024. `shared_bytes`: size of the block's shared buffer.
    `min_blocks`: blocks that should be resident per core, 0 to leave registers to the assembler.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
                       Vx_SizeAttr:$threads, DefaultValuedAttr<I64Attr, "0">:$shared_bytes, DefaultValuedAttr<I64Attr, "0">:$min_blocks);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// Hardware threads of a block, when they do not depend on the launch.
    std::optional<int64_t> constantThreads();
  }];
}
def Vxt_ReturnOp : Vxt_Op<"return", [Terminator, HasParent<"KernelOp">, Pure]> { let assemblyFormat = "attr-dict"; }

def Vxt_ThreadIdOp : Vxt_Op<"thread_id", [Pure]> {
  let summary = "number of this hardware thread in its block, 0 … threads - 1";
  let results = (outs Vxt_Index:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}
def Vxt_BlockIdOp : Vxt_Op<"block_id", [Pure]> {
  let summary = "index of this block along an axis";
  let arguments = (ins Vx_AxisAttr:$axis);
  let results = (outs Vxt_Index:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
}
def Vxt_GridDimOp : Vxt_Op<"grid_dim", [Pure]> {
  let summary = "number of blocks along an axis";
  let arguments = (ins Vx_AxisAttr:$axis);
  let results = (outs Vxt_Index:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
}

//===-- memory ------------------------------------------------------------------------------------------------===//

def Vxt_SharedOp : Vxt_Op<"shared", [Pure]> {
  let summary = "address of a byte of the block's shared buffer; the buffer is aligned to 1024 bytes";
  let arguments = (ins I64Attr:$offset);
  let results = (outs Vxt_Ptr:$result);
  let assemblyFormat = "$offset attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Vxt_LocalOp : Vxt_Op<"local", [MemoryEffects<[MemAlloc]>]> {
  let summary = "memory of this thread, live for the whole kernel, uninitialised";
  let arguments = (ins TypeAttr:$element, I64Attr:$count, DefaultValuedAttr<I64Attr, "0">:$alignment);
  let results = (outs Vxt_Ptr:$result);
  let assemblyFormat = "$count `x` $element attr-dict `:` type($result)";
  let hasVerifier = 1;
}
def Vxt_OffsetOp : Vxt_Op<"offset", [Pure, AllTypesMatch<["base", "result"]>]> {
  let summary = "address `index` elements further";
  let arguments = (ins Vxt_Ptr:$base, Vxt_Index:$index, TypeAttr:$element);
  let results = (outs Vxt_Ptr:$result);
  let assemblyFormat = "$base `[` $index `]` `of` $element attr-dict `:` type($base) `,` type($index)";
}
def Vxt_AddressOp : Vxt_Op<"address", [Pure]> {
  let summary = "the address as a number: 32 bits in shared memory, 64 elsewhere";
  let arguments = (ins Vxt_Ptr:$base);
  let results = (outs AnySignlessInteger:$result);
  let assemblyFormat = "$base attr-dict `:` type($base) `->` type($result)";
  let hasVerifier = 1;
}

def Vxt_LoadOp : Vxt_Op<"load", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a scalar, or a vector from consecutive elements";
  let description = [{
    `alignment` in bytes, 0: that of the scalar type. `mask` false: no access, `0` results.
    A vector is one access where the target has one so wide and the alignment allows it; else several.
    `vxt.load %p[%i] {alignment = 16 : i64} : !vxt.ptr<global>, index -> vector<4xf32>`
  }];
  let arguments = (ins Vxt_Ptr:$base, Vxt_Index:$index, Optional<I1>:$mask, DefaultValuedAttr<I64Attr, "0">:$alignment,
                       DefaultValuedAttr<Vxt_CacheAttr, "Cache::Default">:$cache);
  let results = (outs Vxt_Value:$result);
  let assemblyFormat = "$base `[` $index `]` (`mask` $mask^)? attr-dict `:` type($base) `,` type($index) `->` type($result)";
  let hasVerifier = 1;
}
def Vxt_StoreOp : Vxt_Op<"store", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a scalar, or a vector to consecutive elements; see vxt.load";
  let arguments = (ins Vxt_Value:$value, Vxt_Ptr:$base, Vxt_Index:$index, Optional<I1>:$mask,
                       DefaultValuedAttr<I64Attr, "0">:$alignment, DefaultValuedAttr<Vxt_CacheAttr, "Cache::Default">:$cache);
  let assemblyFormat = "$value `,` $base `[` $index `]` (`mask` $mask^)? attr-dict `:` type($value) `,` type($base) `,` type($index)";
  let hasVerifier = 1;
}

def Vxt_AtomicRmwOp : Vxt_Op<"atomic_rmw", [AllTypesMatch<["value", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "atomic read-modify-write of 32 or 64 bits; yields the old value";
  let arguments = (ins Vx_CombineAttr:$kind, Vx_OrderAttr:$order, Vx_ScopeAttr:$scope, Vxt_Scalar:$value, Vxt_Ptr:$base, Vxt_Index:$index);
  let results = (outs Vxt_Scalar:$result);
  let assemblyFormat = "$kind $order $scope $value `,` $base `[` $index `]` attr-dict `:` type($value) `,` type($base) `,` type($index)";
  let hasVerifier = 1;
}
def Vxt_AtomicCasOp : Vxt_Op<"atomic_cas", [AllTypesMatch<["expected", "desired", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "atomic compare-exchange of the bits; yields the old value";
  let arguments = (ins Vx_OrderAttr:$order, Vx_ScopeAttr:$scope, Vxt_Scalar:$expected, Vxt_Scalar:$desired, Vxt_Ptr:$base, Vxt_Index:$index);
  let results = (outs Vxt_Scalar:$result);
  let assemblyFormat = "$order $scope $expected `,` $desired `,` $base `[` $index `]` attr-dict `:` type($expected) `,` type($base) `,` type($index)";
  let hasVerifier = 1;
}
def Vxt_AtomicLoadOp : Vxt_Op<"atomic_load", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "atomic load of 32 or 64 bits";
  let arguments = (ins Vx_OrderAttr:$order, Vx_ScopeAttr:$scope, Vxt_Ptr:$base, Vxt_Index:$index);
  let results = (outs Vxt_Scalar:$result);
  let assemblyFormat = "$order $scope $base `[` $index `]` attr-dict `:` type($base) `,` type($index) `->` type($result)";
  let hasVerifier = 1;
}
def Vxt_AtomicStoreOp : Vxt_Op<"atomic_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "atomic store of 32 or 64 bits";
  let arguments = (ins Vx_OrderAttr:$order, Vx_ScopeAttr:$scope, Vxt_Scalar:$value, Vxt_Ptr:$base, Vxt_Index:$index);
  let assemblyFormat = "$order $scope $value `,` $base `[` $index `]` attr-dict `:` type($value) `,` type($base) `,` type($index)";
  let hasVerifier = 1;
}

def Vxt_AsyncCopyOp : Vxt_Op<"async_copy", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "copies 4, 8 or 16 bytes from global to shared memory without registers, complete after async_wait";
  let description = [{
    Indices count elements of `element`. Both addresses are aligned to `bytes`. `sourceBytes` (i32), if given: only so many bytes are read, the
    rest of the destination is zero; 0 reads nothing. 16 bytes go past L1.
  }];
  let arguments = (ins Vxt_Ptr:$destination, Vxt_Index:$destinationIndex, Vxt_Ptr:$source, Vxt_Index:$sourceIndex,
                       Optional<I32>:$sourceBytes, TypeAttr:$element, I64Attr:$bytes);
  let assemblyFormat = [{
    $destination `[` $destinationIndex `]` `,` $source `[` $sourceIndex `]` (`read` $sourceBytes^)? `,` $bytes `of` $element attr-dict
    `:` type($destination) `,` type($destinationIndex) `,` type($source) `,` type($sourceIndex)
  }];
  let hasVerifier = 1;
}
def Vxt_AsyncCommitOp : Vxt_Op<"async_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "this thread's async copies since the last commit become one group";
  let assemblyFormat = "attr-dict";
}
def Vxt_AsyncWaitOp : Vxt_Op<"async_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until at most `pending` of this thread's newest groups are incomplete; other threads see the data after a barrier";
  let arguments = (ins I64Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
}

//===-- synchronisation and warps -----------------------------------------------------------------------------===//
// Warp operations are reached by all 32 threads of a warp together, or by those of `mask` (i32, the same in all of them).

def Vxt_BarrierOp : Vxt_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all hardware threads of the block meet; memory written before is seen after";
  let assemblyFormat = "attr-dict";
}
def Vxt_GridBarrierOp : Vxt_Op<"grid_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all hardware threads of the grid meet, whose blocks run at the same time; memory written before is seen after";
  let description = [{ `state` is a word (i32) that is 0 when the launch begins and that nothing else touches. }];
  let arguments = (ins Vxt_Ptr:$state);
  let assemblyFormat = "$state attr-dict `:` type($state)";
}
def Vxt_WarpBarrierOp : Vxt_Op<"warp_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the threads of a warp meet; memory written before is seen after";
  let arguments = (ins Optional<I32>:$mask);
  let assemblyFormat = "(`mask` $mask^)? attr-dict";
}
def Vxt_FenceOp : Vxt_Op<"fence", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "orders the thread's accesses before and after it for the threads of `scope` (vx.fence)";
  let arguments = (ins Vx_OrderAttr:$order, Vx_ScopeAttr:$scope);
  let assemblyFormat = "$order $scope attr-dict";
  let hasVerifier = 1;
}
def Vxt_ShuffleOp : Vxt_Op<"shuffle", [AllTypesMatch<["value", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "value of another lane of the warp; a lane outside the warp gives the own value, one outside `mask` gives anything";
  let arguments = (ins Vx_ShuffleKindAttr:$kind, Vxt_Value:$value, I32:$lane, Optional<I32>:$mask);
  let results = (outs Vxt_Value:$result);
  let assemblyFormat = "$kind $value `,` $lane (`mask` $mask^)? attr-dict `:` type($value)";
}
def Vxt_VoteOp : Vxt_Op<"vote", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "any/all (i1) or ballot (i32 bit mask) of a predicate over the warp";
  let arguments = (ins Vx_VoteKindAttr:$kind, I1:$predicate, Optional<I32>:$mask);
  let results = (outs AnySignlessInteger:$result);
  let assemblyFormat = "$kind $predicate (`mask` $mask^)? attr-dict `->` type($result)";
  let hasVerifier = 1;
}

//===-- matrix units ------------------------------------------------------------------------------------------===//

def Vxt_LoadMatrixOp : Vxt_Op<"load_matrix", [MemoryEffects<[MemRead]>]> {
  let summary = "the warp loads `count` 8 × 8 matrices of 16-bit elements from shared memory (NVIDIA: ldmatrix)";
  let description = [{
    Lanes 8k … 8k+7 give the addresses of matrix k's rows (16 bytes each, 16-byte aligned); lane l receives elements (l / 4, 2·(l % 4)) and the
    next one of every matrix, with `transposed` the element pair of the transposed matrix. Result: `count` × 4 bytes as any vector type.
  }];
  let arguments = (ins Vxt_Ptr:$base, Vxt_Index:$index, TypeAttr:$element, I64Attr:$count, UnitAttr:$transposed);
  let results = (outs Vxt_Vector:$result);
  let assemblyFormat = "$base `[` $index `]` `of` $element $count (`transposed` $transposed^)? attr-dict `:` type($base) `,` type($index) `->` type($result)";
  let hasVerifier = 1;
}
def Vxt_MmaOp : Vxt_Op<"mma", [AllTypesMatch<["c", "result"]>, Pure]> {
  let summary = "warp-wide d = a @ b + c on registers (NVIDIA: mma.sync, fragment layouts as in the PTX ISA)";
  let description = [{
    `shape` is [m, n, k]; the fragments hold m·k/32, k·n/32 and m·n/32 elements per thread in register order (four bytes per register, lowest
    bits first). Element types of a and b: f16, bf16, f8E4M3FN, f8E5M2, i8 (signed), f64, or f32, which the unit reads as tf32.
    `vxt.mma %a, %b, %c [16, 8, 16] : vector<8xf16>, vector<4xf16>, vector<4xf32>`
  }];
  let arguments = (ins Vxt_Vector:$a, Vxt_Vector:$b, Vxt_Vector:$c, DenseI64ArrayAttr:$shape);
  let results = (outs Vxt_Vector:$result);
  let assemblyFormat = "$a `,` $b `,` $c $shape attr-dict `:` type($a) `,` type($b) `,` type($c)";
  let hasVerifier = 1;
}

// Operations on fragments are executed by all lanes of a warp together; pointers and indices are the same in all of them.

def Vxt_FragmentFillOp : Vxt_Op<"fragment_fill", [Pure]> {
  let summary = "a fragment whose elements all have one value, the same in all lanes";
  let arguments = (ins AnyFloat:$value);
  let results = (outs Vxt_Fragment:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}
def Vxt_FragmentLoadOp : Vxt_Op<"fragment_load", [MemoryEffects<[MemRead]>]> {
  let summary = "element (r, c) from ptr[index + r · pitch + c], `transposed`: from ptr[index + c · pitch + r]; shared memory";
  let arguments = (ins Vxt_Ptr:$base, Vxt_Index:$index, I64Attr:$pitch, UnitAttr:$transposed);
  let results = (outs Vxt_Fragment:$result);
  let assemblyFormat = "$base `[` $index `]` `pitch` $pitch (`transposed` $transposed^)? attr-dict `:` type($base) `,` type($index) `->` type($result)";
  let hasVerifier = 1;
}
def Vxt_FragmentStoreOp : Vxt_Op<"fragment_store", [MemoryEffects<[MemWrite]>]> {
  let summary = "element (r, c) to ptr[index + r · pitch + c] in shared memory";
  let arguments = (ins Vxt_Fragment:$value, Vxt_Ptr:$base, Vxt_Index:$index, I64Attr:$pitch);
  let assemblyFormat = "$value `,` $base `[` $index `]` `pitch` $pitch attr-dict `:` type($value) `,` type($base) `,` type($index)";
  let hasVerifier = 1;
}
def Vxt_FragmentMultiplyOp : Vxt_Op<"fragment_multiply", [AllTypesMatch<["c", "result"]>, Pure]> {
  let summary = "a @ b + c, in the type of c (Metal: simdgroup_multiply_accumulate)";
  let arguments = (ins Vxt_Fragment:$a, Vxt_Fragment:$b, Vxt_Fragment:$c);
  let results = (outs Vxt_Fragment:$result);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c)";
  let hasVerifier = 1;
}
def Vxt_FragmentRoundOp : Vxt_Op<"fragment_round", [Pure]> {
  let summary = "every element rounded to a shorter type, to nearest even";
  let arguments = (ins Vxt_Fragment:$value);
  let results = (outs Vxt_Fragment:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

//===-- debugging ---------------------------------------------------------------------------------------------===//

def Vxt_AssertOp : Vxt_Op<"assert", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a false condition writes fault number `fault`, with values as 64 bits, to the launch's report and ends the thread";
  let arguments = (ins I1:$condition, I64Attr:$fault, Variadic<I64>:$values);
  let assemblyFormat = "$condition `,` $fault (`,` $values^ `:` type($values))? attr-dict";
}
def Vxt_PrintOp : Vxt_Op<"print", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "appends a record (fault number `format`, values as 64 bits) to the launch's report";
  let arguments = (ins I64Attr:$format, Variadic<I64>:$values);
  let assemblyFormat = "$format (`,` $values^ `:` type($values))? attr-dict";
}
#endif
