// The vx dialect: its operations. See vx_dialect.td for types and attributes.
#ifndef VORTEX_IR_VX_OPS
#define VORTEX_IR_VX_OPS
include "ir/vx_dialect.td"
include "mlir/Dialect/Arith/IR/ArithOpsInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

class Vx_Op<string mnemonic, list<Trait> traits = []> : Op<Vx_Dialect, mnemonic, traits>;

//===-- structure ---------------------------------------------------------------------------------------------===//

def Vx_EntryOp : Vx_Op<"entry", [Symbol]> {
  let summary = "the launch interface of a kernel";
  let description = [{
    Argument order: the user's parameters, then results, then lets (numbers that the launch computes, of type index), then temporaries (global
    scratch between phases). `args` holds one
    dictionary per argument: `name` (StringAttr), `role` (#vx.role), `access` (#vx.access), for results and temps of tensor type
    `extents` (ArrayAttr of #vx.size) and `zero` (UnitAttr, storage zeroed before phase 0), and `loc` free for tools.
    `scalar_results`: argument numbers of results that are one-element views read back as a host scalar.
    ```
    vx.entry @scale : (!vx.view<?xf32, global>, !vx.view<?xf32, global>) -> ()
        args [{name = "data", role = #vx.role<param>, access = #vx.access<read>}, {name = "", role = #vx.role<result>, …} ]
        constraints [#vx.constraint<#vx.size<"dim(0,0) == dim(1,0)">, "…">]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, ArrayAttr:$args,
      DefaultValuedAttr<ArrayAttr, "{}">:$constraints, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$scalar_results);
  let assemblyFormat = "$sym_name `:` $function_type `args` $args (`constraints` $constraints^)? attr-dict";
  let hasVerifier = 1;
}

//===-- launch ------------------------------------------------------------------------------------------------===//

class Vx_LaunchRegionOp<string mnemonic, list<Trait> traits> : Vx_Op<mnemonic, traits # [SingleBlock, NoTerminator, NoRegionArguments]> {
  let regions = (region SizedRegion<1>:$steps);
}
class Vx_LaunchStepOp<string mnemonic, list<Trait> traits = []>
    : Vx_Op<mnemonic, traits # [ParentOneOf<["LaunchOp", "CaseOp", "LoopOp"]>]>;

def Vx_LaunchOp : Vx_LaunchRegionOp<"launch", [HasParent<"::mlir::ModuleOp">,
                                              DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "what a launch of the entry does, step by step";
  let description = [{
    Steps run in order. Every kernel of the module is run by one `vx.phase`. Without a `vx.launch` a launch runs the kernels of its module in
    their order. Expressions of steps read parameters, results and lets that are set before them on the way, no temporaries. Temporaries
    exist for a launch if a phase that it runs writes them; their extents may name lets of the outermost steps.
    ```
    vx.launch @mm {
      vx.let arg 3 = #vx.size<"device(workers)">
      vx.choose first {
        vx.case "split" when #vx.size<"1023 < dim(0,1)"> {
          vx.phase @mm.partial
          vx.phase @mm.combine
        }
        vx.case "usual" {
          vx.phase @mm.tensors
        }
      }
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$entry);
  let assemblyFormat = "$entry $steps attr-dict";
}

def Vx_PhaseOp : Vx_LaunchStepOp<"phase"> {
  let summary = "one grid: all blocks of a kernel";
  let arguments = (ins FlatSymbolRefAttr:$kernel);
  let assemblyFormat = "$kernel attr-dict";
}

def Vx_LetOp : Vx_LaunchStepOp<"let"> {
  let summary = "sets the entry's argument of that number, of role let, for later steps and their code";
  let arguments = (ins I64Attr:$argument, Vx_SizeAttr:$value);
  let assemblyFormat = "`arg` $argument `=` qualified($value) attr-dict";
}

def Vx_ChooseOp : Vx_LaunchRegionOp<"choose", [ParentOneOf<["LaunchOp", "CaseOp", "LoopOp"]>]> {
  let summary = "runs one of its cases";
  let description = [{
    `first`: the first case whose `needs` and `when` hold. `least`: of the cases whose `needs` hold the one of least `cost`, the first of
    several. The last case has neither needs nor when. `needs` is what the steps of a case rely on; `when` and costs are preferences: any case
    whose needs hold computes the same, up to the grouping of sums. `decides`: the program says which case runs, and others compute something
    else.
    ```
    vx.choose least {
      vx.case "large" cost #vx.size<"ceildiv(dim(0,0), 128) * 90"> { vx.phase @mm.large }
      vx.case "small" cost #vx.size<"ceildiv(dim(0,0), 64) * 50"> { vx.phase @mm.small }
    }
    ```
  }];
  let arguments = (ins UnitAttr:$least, UnitAttr:$decides);
  let assemblyFormat = "(`least` $least^) : (`first`)? (`decides` $decides^)? $steps attr-dict";
  let hasRegionVerifier = 1;
}

def Vx_CaseOp : Vx_LaunchRegionOp<"case", [HasParent<"ChooseOp">]> {
  let summary = "one way of vx.choose, for launches where its sizes are not zero";
  let arguments = (ins StrAttr:$name, OptionalAttr<Vx_SizeAttr>:$needs, OptionalAttr<Vx_SizeAttr>:$when,
      OptionalAttr<Vx_SizeAttr>:$cost);
  let assemblyFormat = [{
    $name (`needs` qualified($needs)^)? (`when` qualified($when)^)? (`cost` qualified($cost)^)? $steps attr-dict
  }];
}

def Vx_LoopOp : Vx_LaunchRegionOp<"loop", [ParentOneOf<["LaunchOp", "CaseOp", "LoopOp"]>]> {
  let summary = "runs its steps again and again, while the condition is not zero";
  let description = [{
    Sets the arguments of these numbers, of role let, to `first`; after each round to `next`, all at once. The condition is asked before each
    round, and it and `next` may read them, as may the steps; `next` may also read what the steps set. Temporaries keep what a round wrote.
    ```
    vx.loop [3] = [#vx.size<"0">] while #vx.size<"scalar(3) < scalar(1)"> next [#vx.size<"scalar(3) + 1">] {
      vx.phase @power.tensors.1
      vx.exchange 4, 5
    }
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$arguments, ArrayAttr:$first, Vx_SizeAttr:$condition, ArrayAttr:$next);
  let assemblyFormat = "$arguments `=` $first `while` qualified($condition) `next` $next $steps attr-dict";
}

def Vx_ReadOp : Vx_LaunchStepOp<"read"> {
  let summary = "waits for the steps before it, then sets the entry's argument of that number, of role let, to what they left in memory";
  let description = [{
    The temporary has one element, an i64. What comes after depends on data: expressions may read the let as any other, but no temporary's
    extents may depend on it, as memory is allocated before the launch runs.
    ```
    vx.phase @converge.partial.0     // writes argument 5
    vx.read arg 3 from 5
    ```
  }];
  let arguments = (ins I64Attr:$argument, I64Attr:$temporary);
  let assemblyFormat = "`arg` $argument `from` $temporary attr-dict";
}

def Vx_ExchangeOp : Vx_LaunchStepOp<"exchange"> {
  let summary = "from here on each of two temporaries of equal type and extents is in the memory of the other";
  let arguments = (ins I64Attr:$a, I64Attr:$b);
  let assemblyFormat = "$a `,` $b attr-dict";
}

//===-- kernels -----------------------------------------------------------------------------------------------===//

def Vx_KernelOp : Vx_Op<"kernel", [FunctionOpInterface, IsolatedFromAbove, AutomaticAllocationScope]> {
  let summary = "one phase: what one block does";
  let description = [{
    Results are written through arguments. `grid` and `block` are three #vx.size each (blocks, logical threads per block).
    `whole_tensor` marks a kernel that is not yet scheduled: it describes the whole grid at once on full tensors, has no
    block or thread ids, and becomes phases in `vx-phases`.
    Every `vx.kernel` of a module takes exactly the entry's arguments.
    `vx.domain` (ArrayAttr of #vx.size, optional, informational): the extents that inferred the grid.
    `vx.cooperative` (unit, optional): all blocks run at the same time, so that they may wait for each other.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
      OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs, OptionalAttr<ArrayAttr>:$grid,
      OptionalAttr<ArrayAttr>:$block, UnitAttr:$whole_tensor);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Vx_ReturnOp : Vx_Op<"return", [Terminator, HasParent<"KernelOp">, Pure]> {
  let summary = "end of a block";
  let assemblyFormat = "attr-dict";
}

def Vx_ThreadsOp : Vx_Op<"threads", [SingleBlockImplicitTerminator<"YieldOp">, RecursiveMemoryEffects]> {
  let summary = "per-thread scalar code";
  let description = [{
    Every logical thread of the block runs the body once; threads are unordered. Body arguments: thread ids x, y, z and the linear id
    `x + nx * (y + ny * z)` (all index), then one scalar per operand of `ins` (element of that rank-1 tensor at the linear id).
    The yielded scalars form the results, rank-1 tensors of block extent (`tensor<?xT>`). Uniform values of the block are used
    directly. The body holds no barrier, tile operation or shared allocation. Warps are 32 consecutive linear ids; warp operations
    are allowed under warp-uniform control.
    ```
    %r = vx.threads (%nx, %ny, %nz) ins(%a : tensor<?xf32>) {
    ^bb0(%x: index, %y: index, %z: index, %linear: index, %v: f32):
      %w = arith.addf %v, %v : f32
      vx.yield %w : f32
    } : tensor<?xf32>
    ```
  }];
  let arguments = (ins Index:$nx, Index:$ny, Index:$nz, Variadic<Vx_ThreadValues>:$inputs);
  let results = (outs Variadic<Vx_ThreadValues>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $nx `,` $ny `,` $nz `)` (`ins` `(` $inputs^ `:` type($inputs) `)`)? $body (`:` type($outputs)^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Vx_YieldOp : Vx_Op<"yield", [Terminator, Pure, ReturnLike]> {
  let summary = "per-thread results of vx.threads";
  let arguments = (ins Variadic<Vx_Scalar>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}

class Vx_GridValue<string mnemonic, string text> : Vx_Op<mnemonic, [Pure]> {
  let summary = text;
  let arguments = (ins Vx_AxisAttr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
  let hasVerifier = 1;
}
def Vx_BlockIdOp : Vx_GridValue<"block_id", "index of this block along an axis">;
def Vx_GridDimOp : Vx_GridValue<"grid_dim", "number of blocks along an axis">;
def Vx_BlockDimOp : Vx_GridValue<"block_dim", "number of logical threads of a block along an axis">;

//===-- memory ------------------------------------------------------------------------------------------------===//

def Vx_AllocOp : Vx_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary =
      "shared (per block) or local (per thread) memory, live to the end of the enclosing region, uninitialised";
  let arguments = (ins OptionalAttr<StrAttr>:$name);
  let results = (outs Vx_View:$result);
  let assemblyFormat = "($name^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Vx_DimOp : Vx_Op<"dim", [Pure]> {
  let summary = "extent of a view";
  let arguments = (ins Vx_View:$view, I64Attr:$dim);
  let results = (outs Index:$result);
  let assemblyFormat = "$view `,` $dim attr-dict `:` type($view)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Vx_SubviewOp : Vx_Op<"subview", [Pure, AttrSizedOperandSegments]> {
  let summary = "rectangular window of a view";
  let description = [{
    One offset per source dimension; `sizes` gives the dynamic extents of the result in order. Source dimensions listed in `dropped` have
    extent one and vanish. Offsets plus sizes must be inside the source (the producer guarantees or guards it).
    `vx.subview %v[%i, %j] sizes(%n) dropped [0] : !vx.view<?x?xf32, global> to !vx.view<?xf32, global>`
    (Operand types may drop `!vx.view`, and print without it.)
  }];
  let arguments = (ins Vx_View:$source, Variadic<Index>:$offsets, Variadic<Index>:$sizes,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dropped);
  let results = (outs Vx_View:$result);
  let assemblyFormat = "$source `[` $offsets `]` (`sizes` `(` $sizes^ `)`)? (`dropped` $dropped^)? attr-dict `:` "
                       "type($source) `to` type($result)";
  let hasVerifier = 1;
}

def Vx_LoadOp : Vx_Op<"load", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "one element";
  let description = [{
    `guarded`: an index outside the view (indices are compared unsigned, per dimension) yields 0. Without it the access is known to be inside.
    `mask` false yields 0 and touches no memory. In a thread region each thread loads; at block level one value serves all threads.
    `race_free`: proven, in all launches that the entry allows: another thread's access of the element that this one is not ordered with, by barriers or
    atomics, is no write. Only global and shared memory has it.
  }];
  let arguments = (ins Vx_View:$view, Variadic<Index>:$indices, Optional<I1>:$mask, UnitAttr:$guarded, UnitAttr:$race_free);
  let results = (outs Vx_Scalar:$result);
  let assemblyFormat =
      "$view `[` $indices `]` (`mask` $mask^)? (`guarded` $guarded^)? (`race_free` $race_free^)? attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
}

def Vx_StoreOp : Vx_Op<"store", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "one element; outside (when guarded) or masked off: nothing. At block level it happens once per block";
  let description = "`race_free`: no other thread's access of the element is unordered with this one, see vx.load.";
  let arguments = (ins Vx_Scalar:$value, Vx_View:$view, Variadic<Index>:$indices, Optional<I1>:$mask,
      UnitAttr:$guarded, UnitAttr:$race_free);
  let assemblyFormat = "$value `,` $view `[` $indices `]` (`mask` $mask^)? (`guarded` $guarded^)? (`race_free` $race_free^)? attr-dict `:` "
                       "type($value) `,` type($view)";
  let hasVerifier = 1;
}

def Vx_AtomicRmwOp : Vx_Op<"atomic_rmw", [AttrSizedOperandSegments, AllTypesMatch<["value", "result"]>,
                                          DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "atomic read-modify-write; yields the old value (0 where masked off or guarded off)";
  let arguments = (ins Vx_CombineAttr:$kind, Vx_Scalar:$value, Vx_View:$view, Variadic<Index>:$indices,
      Optional<I1>:$mask, Vx_OrderAttr:$order, Vx_ScopeAttr:$scope, UnitAttr:$guarded);
  let results = (outs Vx_Scalar:$result);
  let assemblyFormat = "$kind $order $scope $value `,` $view `[` $indices `]` (`mask` $mask^)? (`guarded` $guarded^)? "
                       "attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = "::mlir::Type getElementType() { return getResult().getType(); }";
}

def Vx_AtomicCasOp : Vx_Op<"atomic_cas", [AttrSizedOperandSegments, AllTypesMatch<["expected", "desired", "result"]>,
                                          DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "atomic compare-exchange; yields the old value";
  let arguments = (ins Vx_Scalar:$expected, Vx_Scalar:$desired, Vx_View:$view, Variadic<Index>:$indices,
      Optional<I1>:$mask, Vx_OrderAttr:$order, Vx_ScopeAttr:$scope, UnitAttr:$guarded);
  let results = (outs Vx_Scalar:$result);
  let assemblyFormat = "$order $scope $expected `,` $desired `,` $view `[` $indices `]` (`mask` $mask^)? (`guarded` "
                       "$guarded^)? attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
}

def Vx_AtomicLoadOp
    : Vx_Op<"atomic_load", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "atomic load";
  let arguments = (ins Vx_View:$view, Variadic<Index>:$indices, Optional<I1>:$mask, Vx_OrderAttr:$order,
      Vx_ScopeAttr:$scope, UnitAttr:$guarded);
  let results = (outs Vx_Scalar:$result);
  let assemblyFormat = "$order $scope $view `[` $indices `]` (`mask` $mask^)? (`guarded` $guarded^)? attr-dict `:` "
                       "type($view) `->` type($result)";
  let hasVerifier = 1;
}

def Vx_AtomicStoreOp
    : Vx_Op<"atomic_store", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "atomic store";
  let arguments = (ins Vx_Scalar:$value, Vx_View:$view, Variadic<Index>:$indices, Optional<I1>:$mask,
      Vx_OrderAttr:$order, Vx_ScopeAttr:$scope, UnitAttr:$guarded);
  let assemblyFormat = "$order $scope $value `,` $view `[` $indices `]` (`mask` $mask^)? (`guarded` $guarded^)? "
                       "attr-dict `:` type($value) `,` type($view)";
  let hasVerifier = 1;
}

//===-- synchronisation and warps -----------------------------------------------------------------------------===//

def Vx_BarrierOp : Vx_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "sync_block(), or sync_grid(): only at block level, orders all memory of the block, or of the grid";
  let description = [{
    `grid`: all blocks of the kernel, which is `vx.cooperative`, meet, every block equally often. The view is a word of the launch that
    begins as 0 and that nothing else touches.
    `vx.barrier grid %state : !vx.view<1xi32, global>`
  }];
  let arguments = (ins Optional<Vx_View>:$grid);
  let assemblyFormat = "(`grid` $grid^ `:` type($grid))? attr-dict";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::Value()); }]>];
  let hasVerifier = 1;
}
def Vx_WarpBarrierOp : Vx_Op<"warp_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "sync_warp(): only inside vx.threads";
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}
def Vx_FenceOp : Vx_Op<"fence", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "orders the thread's accesses before and after it for the threads of `scope`, as C++'s atomic_thread_fence; only inside vx.threads";
  let description = [{
    Nobody waits. Together with a relaxed atomic that follows it a `release` fence does what a release atomic does, `acquire` after one likewise;
    all fences with `seq_cst` are in one order besides.
    `vx.fence seq_cst device`
  }];
  let arguments = (ins Vx_OrderAttr:$order, Vx_ScopeAttr:$scope);
  let assemblyFormat = "$order $scope attr-dict";
  let hasVerifier = 1;
}
def Vx_WarpShuffleOp : Vx_Op<"warp_shuffle", [AllTypesMatch<["value", "result"]>]> {
  let summary = "value of another lane; a lane outside the warp or block gives the own value";
  let arguments = (ins Vx_ShuffleKindAttr:$kind, Vx_Scalar:$value, I32:$lane);
  let results = (outs Vx_Scalar:$result);
  let assemblyFormat = "$kind $value `,` $lane attr-dict `:` type($value)";
  let hasVerifier = 1;
}
def Vx_WarpReduceOp : Vx_Op<"warp_reduce", [AllTypesMatch<["value", "result"]>]> {
  let summary = "combination over the active lanes of the warp, the same in every lane; fixed order: butterfly xor 16, "
                "8, 4, 2, 1";
  let arguments = (ins Vx_CombineAttr:$kind, Vx_Scalar:$value);
  let results = (outs Vx_Scalar:$result);
  let assemblyFormat = "$kind $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}
def Vx_WarpVoteOp : Vx_Op<"warp_vote"> {
  let summary = "any/all (i1) or ballot (i32 bit mask) of a predicate over the warp";
  let arguments = (ins Vx_VoteKindAttr:$kind, I1:$predicate);
  let results = (outs Vx_Scalar:$result);
  let assemblyFormat = "$kind $predicate attr-dict `->` type($result)";
  let hasVerifier = 1;
}

//===-- staging -----------------------------------------------------------------------------------------------===//
// Copies into shared memory that run beside the code after them. A group is what was started since the last commit; groups end in order.

def Vx_StageCopyOp : Vx_Op<"stage_copy", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "starts copying a window of a view into a shared view; elements outside the source are 0";
  let description = [{
    One offset per source dimension. The window has the destination's extents; source dimensions listed in `dropped` have extent one in the
    window and are missing in the destination. The copy belongs to the group that the next `vx.stage_commit` closes; its data may be read
    after a `vx.stage_wait` that covers the group, followed by a `vx.barrier`. Until then nothing else touches the destination.
    `inbounds`: the window is known to lie inside the source. A target without such copies copies at once.
    `vx.stage_copy %a[%i, %k] to %tile : !vx.view<?x?xf16, global> to !vx.view<128x32xf16, shared>`
  }];
  let arguments = (ins Vx_View:$source, Variadic<Index>:$offsets, Vx_View:$destination,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dropped, UnitAttr:$inbounds);
  let assemblyFormat = "$source `[` $offsets `]` `to` $destination (`dropped` $dropped^)? (`inbounds` $inbounds^)? "
                       "attr-dict `:` type($source) `to` type($destination)";
  let hasVerifier = 1;
}

def Vx_StageCommitOp : Vx_Op<"stage_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "closes the current group of copies, which may be empty; only at block level";
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Vx_StageWaitOp : Vx_Op<"stage_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until at most the `pending` most recently closed groups are in flight; only at block level";
  let arguments = (ins I64Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
  let hasVerifier = 1;
}

//===-- tiles -------------------------------------------------------------------------------------------------===//
// Extents of a tile are static or `?`. Ops that make a tile from nothing take the dynamic extents as `sizes` operands, in order;
// every other tile's extents follow from its operands (see ir/tile_sizes.h: `tileSizes(Value)`).

def Vx_TileLoadOp
    : Vx_Op<"tile_load", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "rectangular piece of a view, starting at the offsets; elements outside the view are 0 (or `other`)";
  let arguments = (ins Vx_View:$view, Variadic<Index>:$offsets, Variadic<Index>:$sizes, Optional<Vx_Scalar>:$other,
      UnitAttr:$inbounds);
  let results = (outs Vx_Tile:$result);
  let assemblyFormat = [{
    $view `[` $offsets `]` (`sizes` `(` $sizes^ `)`)? (`other` $other^ `:` type($other))? (`inbounds` $inbounds^)? attr-dict `:` type($view) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Vx_TileStoreOp : Vx_Op<"tile_store", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "writes a tile at the offsets; elements outside the view are dropped";
  let arguments = (ins Vx_Tile:$value, Vx_View:$view, Variadic<Index>:$offsets, UnitAttr:$inbounds);
  let assemblyFormat =
      "$value `,` $view `[` $offsets `]` (`inbounds` $inbounds^)? attr-dict `:` type($value) `,` type($view)";
  let hasVerifier = 1;
}

def Vx_BroadcastOp : Vx_Op<"broadcast", [Pure]> {
  let summary = "repeats a scalar or tile; operand dimension i becomes result dimension dims[i], the others are new";
  let description = "An operand dimension of extent 1 (static) may be stretched to the result's extent.";
  let arguments = (ins Vx_Value:$value, DenseI64ArrayAttr:$dims, Variadic<Index>:$sizes);
  let results = (outs Vx_Tile:$result);
  let assemblyFormat = "$value `dims` $dims (`sizes` `(` $sizes^ `)`)? attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Vx_IotaOp : Vx_Op<"iota", [Pure]> {
  let summary = "element [.., i, ..] is i along `dim`; integer or index elements";
  let arguments = (ins I64Attr:$dim, Variadic<Index>:$sizes);
  let results = (outs Vx_Tile:$result);
  let assemblyFormat = "$dim (`sizes` `(` $sizes^ `)`)? attr-dict `->` type($result)";
  let hasVerifier = 1;
}

def Vx_TransposeOp : Vx_Op<"transpose", [Pure]> {
  let summary = "result dimension i is operand dimension permutation[i]";
  let arguments = (ins Vx_Tile:$value, DenseI64ArrayAttr:$permutation);
  let results = (outs Vx_Tile:$result);
  let assemblyFormat = "$value $permutation attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Vx_ReshapeOp : Vx_Op<"reshape", [Pure]> {
  let summary = "same elements in row-major order under new extents";
  let arguments = (ins Vx_Tile:$value, Variadic<Index>:$sizes);
  let results = (outs Vx_Tile:$result);
  let assemblyFormat = "$value (`sizes` `(` $sizes^ `)`)? attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Vx_SliceOp : Vx_Op<"slice", [Pure, AttrSizedOperandSegments]> {
  let summary = "rectangular part of a tile; one offset per dimension, dynamic result extents in `sizes`, dimensions "
                "in `dropped` have extent one and vanish";
  let arguments = (ins Vx_Tile:$value, Variadic<Index>:$offsets, Variadic<Index>:$sizes,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dropped);
  let results = (outs Vx_Tile:$result);
  let assemblyFormat = "$value `[` $offsets `]` (`sizes` `(` $sizes^ `)`)? (`dropped` $dropped^)? attr-dict `:` "
                       "type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Vx_ElementOp : Vx_Op<"element", [Pure]> {
  let summary = "one element of a tile as a uniform scalar; outside: 0";
  let arguments = (ins Vx_Tile:$value, Variadic<Index>:$indices);
  let results = (outs Vx_Scalar:$result);
  let assemblyFormat = "$value `[` $indices `]` attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Vx_ReduceOp : Vx_Op<"reduce", [Pure]> {
  let summary = "combines the listed dimensions away; all of them: the result is a scalar. Empty extents give the "
                "neutral element (for max/min: the type's lowest/highest, floats ∓inf)";
  let arguments = (ins Vx_CombineAttr:$kind, Vx_Tile:$value, DenseI64ArrayAttr:$dims);
  let results = (outs Vx_Value:$result);
  let assemblyFormat = "$kind $value `dims` $dims attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Vx_ScanOp : Vx_Op<"scan", [Pure, AttrSizedOperandSegments, AllTypesMatch<["value", "result"]>]> {
  let summary = "inclusive (or exclusive) prefix combination along a dimension";
  let description = [{
    `after %n in %state`: the vector is piece n of a longer one, whose pieces are those of the blocks of this phase, each with a number of its own
    below the number of blocks. What the pieces before it combine to comes first; blocks tell each other by `state` (ir/look_back.h), which only
    such scans touch and which was zero before the phase. A block waits for those with lower numbers.
    `vx.scan addf %x dim 0 after %n in %state : !vx.view<?xi64, global> : tensor<?xf32>`
  }];
  let arguments = (ins Vx_CombineAttr:$kind, Vx_Tile:$value, I64Attr:$dim, UnitAttr:$exclusive, Optional<Index>:$number,
                       Optional<Vx_View>:$state);
  let results = (outs Vx_Tile:$result);
  let assemblyFormat = [{
    $kind $value `dim` $dim (`exclusive` $exclusive^)? (`after` $number^ `in` $state `:` type($state))? attr-dict `:` type($value)
  }];
  let hasVerifier = 1;
}

def Vx_DotOp : Vx_Op<"dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + a @ b over the last two dimensions, batched over equal leading ones; products and sums in acc's "
                "element type, one rounding per step, order fixed by the schedule";
  let arguments = (ins Vx_Tile:$a, Vx_Tile:$b, Vx_Tile:$acc);
  let results = (outs Vx_Tile:$result);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a) `,` type($b) `->` type($result)";
  let hasVerifier = 1;
}

//===-- arithmetic upstream lacks -----------------------------------------------------------------------------===//

def Vx_IntOp : Vx_Op<"int", [Pure, SameOperandsAndResultType, Elementwise, Scalarizable, Vectorizable, Tensorizable]> {
  let summary = "total integer division, remainder or shift on scalars or tiles";
  let arguments = (ins Vx_IntKindAttr:$kind, AnyType:$lhs, AnyType:$rhs);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Vx_FloatToIntOp : Vx_Op<"float_to_int", [Pure, Elementwise, Scalarizable, Vectorizable, Tensorizable]> {
  let summary = "saturating conversion toward zero, NaN to 0";
  let arguments = (ins AnyType:$value, UnitAttr:$isUnsigned);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$value (`unsigned` $isUnsigned^)? attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

// arith's own definition would define its enums here again.
def Vx_FastMathAttr : Attr<CPred<"::llvm::isa<::mlir::arith::FastMathFlagsAttr>($_self)">, "fast-math flags"> {
  let storageType = "::mlir::arith::FastMathFlagsAttr";
  let returnType = "::mlir::arith::FastMathFlags";
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "::mlir::arith::FastMathFlagsAttr::get($_builder.getContext(), $0)";
}

class Vx_FloatFunction<string name> : Vx_Op<name, [Pure, SameOperandsAndResultType, Elementwise, Scalarizable, Vectorizable, Tensorizable,
                                                   DeclareOpInterfaceMethods<ArithFastMathInterface>]> {
  let arguments = (ins FloatLike:$operand, DefaultValuedAttr<Vx_FastMathAttr, "::mlir::arith::FastMathFlags::none">:$fastmath);
  let results = (outs FloatLike:$result);
  let assemblyFormat = "$operand (`fastmath` $fastmath^)? attr-dict `:` type($result)";
}

def Vx_SigmoidOp : Vx_FloatFunction<"sigmoid"> {
  let summary = "1 / (1 + exp(-x)), without the cancellations and overflows of that expression";
  let description = "`%y = vx.sigmoid %x fastmath #arith.fastmath<contract> : tensor<?xf32>`";
}

def Vx_ErfcOp : Vx_FloatFunction<"erfc"> {
  let summary = "1 - erf(x), accurate where erf(x) is close to 1";
  let description = "`%y = vx.erfc %x : f32`";
}

//===-- debugging ---------------------------------------------------------------------------------------------===//

def Vx_AssertOp : Vx_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "a false condition ends the launch with this message and the op's location; values as in vx.print";
  let arguments = (ins I1:$condition, StrAttr:$message, StrAttr:$id, Variadic<Vx_Scalar>:$values,
      DefaultValuedAttr<DenseBoolArrayAttr, "{}">:$is_unsigned);
  let assemblyFormat = "$condition `,` $message `id` $id (`,` $values^ `:` type($values))? attr-dict";
}
def Vx_PrintOp : Vx_Op<"print", [MemoryEffects<[MemWrite]>]> {
  let summary = "prints values through the launch's bounded buffer; `{}` in the format stands for the next value, "
                "`signs` marks unsigned integers";
  let arguments = (ins StrAttr:$format, Variadic<Vx_Scalar>:$values,
      DefaultValuedAttr<DenseBoolArrayAttr, "{}">:$is_unsigned);
  let assemblyFormat = "$format (`,` $values^ `:` type($values))? attr-dict";
}
#endif
