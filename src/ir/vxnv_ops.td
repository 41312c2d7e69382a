// The vxnv dialect: warpgroups with roles, rings of bulk copies and asynchronous products of NVIDIA chips from 9.0 on.
#ifndef VORTEX_IR_VXNV_OPS
#define VORTEX_IR_VXNV_OPS
include "ir/vx_dialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Vxnv_Dialect : Dialect {
  let name = "vxnv";
  let cppNamespace = "::vortex::ir::vxnv";
  let summary = "Roles, rings, bulk copies and asynchronous products inside vxt.kernel";
  let description = [{
    Two groups of operations. The first says what happens: `roles`, `ring`, `acquire` … `release`, `copy`, `dot_start`, `dot_wait`, `store`; waits,
    parities and slots are implied, and the verifier of `roles` proves that they fit. `vx-expand-roles` turns it into the second, one
    operation per instruction. Both stand in a `vxt.kernel` beside the operations of vxt; its attribute `vxnv.maps` (an array of #vxnv.map)
    holds the tensor maps that copies and stores name by number.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::vortex::ir::vxt::VxtDialect"];
  let extraClassDeclaration = "void registerTypes();";
}

class Vxnv_Op<string mnemonic, list<Trait> traits = []> : Op<Vxnv_Dialect, mnemonic, traits>;
class Vxnv_Effect<string mnemonic, list<Trait> traits = []>
    : Vxnv_Op<mnemonic, !listconcat(traits, [MemoryEffects<[MemRead, MemWrite]>])>;

def Vxnv_MapAttr : AttrDef<Vxnv_Dialect, "Map"> {
  let mnemonic = "map";
  let summary = "a tensor that bulk copies take boxes of; what a launch encodes for it";
  let description = [{
    Innermost dimension first; `strides` in bytes, of all dimensions but the innermost, which is contiguous. `box`: elements per copy. Rows of a box
    lie in shared memory under the XOR swizzle of that many bytes (0: none), one after the other. What a box has outside the tensor is read as zero and not written.
  }];
  let parameters = (ins "::mlir::Type":$element, "::vortex::ir::SizeAttr":$address, "::mlir::ArrayAttr":$extents,
                        "::mlir::ArrayAttr":$strides, "::mlir::DenseI64ArrayAttr":$box, "int64_t":$swizzle);
  let assemblyFormat = "`<` $element `at` $address `extents` $extents `strides` $strides `box` $box `swizzle` $swizzle `>`";
  let extraClassDeclaration = "int64_t boxBytes() const;";
}

def Vxnv_Pointer : Type<CPred<"::llvm::isa<::vortex::ir::vxt::PtrType>($_self)">, "address", "::vortex::ir::vxt::PtrType">;

class Vxnv_Type<string name, string mnemonic_> : TypeDef<Vxnv_Dialect, name> { let mnemonic = mnemonic_; }
def Vxnv_Ring : Vxnv_Type<"Ring", "ring"> { let summary = "slots of shared memory that producers fill and consumers empty in turn"; }
def Vxnv_Slot : Vxnv_Type<"Slot", "slot"> { let summary = "one slot of a ring while it is held"; }
def Vxnv_Sums : Vxnv_Type<"Sums", "sums"> {
  let summary = "sums of a warpgroup: 64 rows and this many columns, `!vxnv.sums<256>` of f32, `!vxnv.sums<256, i32>` of integers";
  let description = [{
    Thread t of the warpgroup holds, as number 4j + 2h + i, row 16 (t / 32) + 8h + t / 4 mod 8 and column 8j + 2 (t mod 4) + i
    (PTX ISA, register fragments of wgmma).
  }];
  let parameters = (ins "int64_t":$columns, OptionalParameter<"::mlir::Type">:$integer);
  let assemblyFormat = "`<` $columns (`,` $integer^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t perThread() const { return getColumns() / 2; }
    ::mlir::Type elementType() const;
  }];
}

def Vxnv_Sum : AnyTypeOf<[F32, I32]>;

//===-- structure ---------------------------------------------------------------------------------------------===//

def Vxnv_RingOp : Vxnv_Op<"ring", [MemoryEffects<[MemAlloc]>]> {
  let summary = "`stages` slots of `bytes` bytes in the block's shared buffer from `offset`, and two barriers per slot from `barriers`";
  let description = [{
    Slots start at multiples of 1024 bytes. A slot is full when all bytes of its copies have arrived, and empty when each warp of the
    consumers has released it; all are empty at first. Every role goes through the slots in order, from the first.
  }];
  let arguments = (ins I64Attr:$stages, I64Attr:$bytes, I64Attr:$offset, I64Attr:$barriers);
  let results = (outs Vxnv_Ring:$result);
  let assemblyFormat = "`stages` $stages `bytes` $bytes `at` $offset `barriers` `at` $barriers attr-dict";
  let hasVerifier = 1;
}

def Vxnv_RolesOp : Vxnv_Effect<"roles", [NoTerminator, SingleBlock]> {
  let summary = "the warpgroups of the block part: one copies, the others compute";
  let description = [{
    The first warpgroup runs `producer`, in one thread; the other `consumers` run `consumer`, whose argument is their number. `registers`: per thread of
    the producer and of a consumer, multiples of 8. At most one per kernel, and nothing but what all roles use before it. Values do not leave.
  }];
  let arguments = (ins I64Attr:$consumers, DenseI64ArrayAttr:$registers);
  let regions = (region SizedRegion<1>:$producer, SizedRegion<1>:$consumer);
  let assemblyFormat = "`registers` $registers `producer` $producer `consumers` $consumers $consumer attr-dict";
  let hasVerifier = 1;
}

def Vxnv_TilesOp : Vxnv_Effect<"tiles", [NoTerminator, SingleBlock]> {
  let summary = "runs the body for the tiles of this block: block number, block number + blocks, … below `count`";
  let description = "The body's argument is the tile's number; every role runs it with the same numbers in the same order.";
  let arguments = (ins Index:$count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$count $body attr-dict";
  let hasVerifier = 1;
}

def Vxnv_AcquireOp : Vxnv_Effect<"acquire"> {
  let summary = "producer: waits until the ring's next slot is empty";
  let arguments = (ins Vxnv_Ring:$ring);
  let results = (outs Vxnv_Slot:$slot);
  let assemblyFormat = "$ring attr-dict";
}
def Vxnv_CopyOp : Vxnv_Effect<"copy"> {
  let summary = "producer: starts copying the box of map `map` at these coordinates (innermost first) to `offset` bytes of the slot";
  let arguments = (ins Vxnv_Slot:$slot, I64Attr:$map, Variadic<Index>:$coordinates, I64Attr:$offset);
  let assemblyFormat = "$map `[` $coordinates `]` `to` $slot `+` $offset attr-dict";
  let hasVerifier = 1;
}
def Vxnv_PublishOp : Vxnv_Effect<"publish"> {
  let summary = "producer: the slot acquired last is full when its copies have arrived";
  let arguments = (ins Vxnv_Ring:$ring);
  let assemblyFormat = "$ring attr-dict";
}
def Vxnv_AwaitOp : Vxnv_Effect<"await"> {
  let summary = "consumer: waits until the ring's next slot is full";
  let arguments = (ins Vxnv_Ring:$ring);
  let results = (outs Vxnv_Slot:$slot);
  let assemblyFormat = "$ring attr-dict";
}
def Vxnv_ReleaseOp : Vxnv_Effect<"release"> {
  let summary = "consumer: gives back the oldest slot it holds";
  let arguments = (ins Vxnv_Ring:$ring);
  let assemblyFormat = "$ring attr-dict";
}

def Vxnv_SumsOp : Vxnv_Op<"sums", [Pure]> {
  let summary = "registers for sums; what they hold is undefined until a `dot_start first`";
  let results = (outs Vxnv_Sums:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}
class Vxnv_StartOp<string mnemonic> : Vxnv_Effect<mnemonic, [AllTypesMatch<["sums", "result"]>]> {
  let results = (outs Vxnv_Sums:$result);
  let hasVerifier = 1;
}
def Vxnv_DotStartOp : Vxnv_StartOp<"dot_start"> {
  let summary = "starts sums + A · B on `steps` times 128 bytes of depth of two slots; `first`: A · B instead";
  let description = [{
    A: 64 rows, B: as many columns as the sums, in their slots from these byte offsets, further steps of the depth `a_step` and `b_step` bytes apart. Along
    the depth (the default): rows (columns) of 128 bytes, one after the other. `across`, of 16-bit elements only: blocks of 64 rows (columns) of 8192
    bytes, each 64 steps of 128 bytes. All under the swizzle of 128 bytes.
    Elements: f16, bf16, f8E4M3FN, f8E5M2, tf32 (f32 in memory, rounded by its map), or si8 and ui8, whose sums are i32 and wrap.
    Of 8-bit floats the unit is reported to keep about 14 bits of a sum: long depths are multiplied in parts that are added apart.
    Until a `dot_wait` covers it the result may only go to further starts and waits, and the slots may not be released.
  }];
  let arguments = (ins Vxnv_Sums:$sums, Vxnv_Slot:$a_slot, Index:$a, Vxnv_Slot:$b_slot, Index:$b, TypeAttr:$element, UnitAttr:$a_across, UnitAttr:$b_across,
                       UnitAttr:$first, DefaultValuedAttr<I64Attr, "1">:$steps, DefaultValuedAttr<I64Attr, "0">:$a_step, DefaultValuedAttr<I64Attr, "0">:$b_step);
  let assemblyFormat = [{
    $sums `a` $a_slot (`across` $a_across^)? `+` $a `b` $b_slot (`across` $b_across^)? `+` $b `of` $element (`first` $first^)? attr-dict `:` type($sums)
  }];
}
def Vxnv_DotStartRegistersOp : Vxnv_StartOp<"dot_start_registers"> {
  let summary = "as `dot_start`, with A in registers: 16 words per thread for each 128 bytes of depth";
  let description = [{
    Thread t holds, as word 4k + 2r + h, elements 16k + 8r + 2 (t mod 4) and the next of row 16 (t / 32) + 8h + t / 4 mod 8: sums of this warpgroup, rounded and
    packed two by two, lie like this.
  }];
  let arguments = (ins Vxnv_Sums:$sums, Variadic<I32>:$words, Vxnv_Slot:$b_slot, Index:$b, TypeAttr:$element, UnitAttr:$b_across, UnitAttr:$first,
                       DefaultValuedAttr<I64Attr, "0">:$b_step);
  let assemblyFormat = "$sums `a` `(` $words `)` `b` $b_slot (`across` $b_across^)? `+` $b `of` $element (`first` $first^)? attr-dict `:` type($sums)";
  let extraClassDeclaration = "int64_t steps() { return static_cast<int64_t>(getWords().size()) / 16; }";
}
def Vxnv_DotWaitOp : Vxnv_Effect<"dot_wait", [AllTypesMatch<["sums", "result"]>]> {
  let summary = "waits until at most the `pending` latest starts of this warpgroup run";
  let arguments = (ins Vxnv_Sums:$sums, I64Attr:$pending);
  let results = (outs Vxnv_Sums:$result);
  let assemblyFormat = "$sums `pending` $pending attr-dict `:` type($sums)";
}
def Vxnv_SumOp : Vxnv_Op<"sum", [Pure, TypesMatchWith<"the element of the sums", "sums", "result",
                                                      "::llvm::cast<::vortex::ir::vxnv::SumsType>($_self).elementType()">]> {
  let summary = "one of the sums this thread holds, of a `dot_wait` for the products that make them or of values";
  let arguments = (ins Vxnv_Sums:$sums, I64Attr:$number);
  let results = (outs Vxnv_Sum:$result);
  let assemblyFormat = "$sums `[` $number `]` attr-dict `:` type($sums)";
  let hasVerifier = 1;
}

def Vxnv_SumsOfOp : Vxnv_Op<"sums_of", [Pure]> {
  let summary = "sums that this thread's values are, for products to add to";
  let arguments = (ins Variadic<F32>:$values);
  let results = (outs Vxnv_Sums:$result);
  let assemblyFormat = "`(` $values `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Vxnv_TurnBeginOp : Vxnv_Effect<"turn_begin"> {
  let summary = "consumer: waits for its turn; consumers take turns by number, from the first";
  let description = "All consumers take as many turns.";
  let assemblyFormat = "attr-dict";
}
def Vxnv_TurnEndOp : Vxnv_Effect<"turn_end"> {
  let summary = "consumer: the next one's turn begins";
  let assemblyFormat = "attr-dict";
}

def Vxnv_StoreOp : Vxnv_Effect<"store"> {
  let summary = "the warp starts writing the box at `source`, which its lanes have filled, to these coordinates of map `map`";
  let arguments = (ins Vxnv_Pointer:$source, I64Attr:$map, Variadic<Index>:$coordinates);
  let assemblyFormat = "$map `[` $coordinates `]` `from` $source attr-dict `:` type($source)";
  let hasVerifier = 1;
}
def Vxnv_StoreWaitOp : Vxnv_Effect<"store_wait"> {
  let summary = "waits until all but the `pending` latest stores of this warp have read their boxes; `written`: have written them";
  let arguments = (ins I64Attr:$pending, UnitAttr:$written);
  let assemblyFormat = "`pending` $pending (`written` $written^)? attr-dict";
}

//===-- instructions ------------------------------------------------------------------------------------------===//

def Vxnv_StoreMatrixOp : Vxnv_Effect<"store_matrix"> {
  let summary = "the warp writes four 8 × 8 matrices of 16-bit elements (stmatrix): lanes 8k … 8k+7 give the addresses of matrix k's rows";
  let arguments = (ins Vxnv_Pointer:$base, Variadic<I32>:$words);
  let assemblyFormat = "$words `to` $base attr-dict `:` type($base)";
  let hasVerifier = 1;
}
def Vxnv_PrefetchMapOp : Vxnv_Effect<"prefetch_map"> {
  let summary = "map `map` is going to be used";
  let arguments = (ins I64Attr:$map);
  let assemblyFormat = "$map attr-dict";
}
def Vxnv_BarrierInitOp : Vxnv_Effect<"barrier_init"> {
  let summary = "a barrier (8 bytes of shared memory) whose phases end after `count` arrivals and the bytes that they announced";
  let arguments = (ins Vxnv_Pointer:$barrier, I64Attr:$count);
  let assemblyFormat = "$barrier `count` $count attr-dict `:` type($barrier)";
}
def Vxnv_BarrierInitFenceOp : Vxnv_Effect<"barrier_init_fence"> {
  let summary = "bulk copies see the barriers that this thread has initialised";
  let assemblyFormat = "attr-dict";
}
def Vxnv_BarrierExpectOp : Vxnv_Effect<"barrier_expect"> {
  let summary = "arrives and announces bytes of copies";
  let arguments = (ins Vxnv_Pointer:$barrier, I64Attr:$bytes);
  let assemblyFormat = "$barrier `bytes` $bytes attr-dict `:` type($barrier)";
}
def Vxnv_BarrierArriveOp : Vxnv_Effect<"barrier_arrive"> {
  let summary = "arrives; what this thread did before is seen by those that wait";
  let arguments = (ins Vxnv_Pointer:$barrier);
  let assemblyFormat = "$barrier attr-dict `:` type($barrier)";
}
def Vxnv_BarrierWaitOp : Vxnv_Effect<"barrier_wait"> {
  let summary = "waits for the end of the phase of this parity; parity 1 of a new barrier counts as ended";
  let arguments = (ins Vxnv_Pointer:$barrier, I32:$parity);
  let assemblyFormat = "$barrier `parity` $parity attr-dict `:` type($barrier)";
}
def Vxnv_NamedBarrierOp : Vxnv_Effect<"named_barrier"> {
  let summary = "arrives at barrier `number` of the block, which opens for every `threads` arrivals, and waits for that unless `arrives` only";
  let description = "Numbers 1 … 15; all lanes of a warp execute it.";
  let arguments = (ins I32:$number, I64Attr:$threads, UnitAttr:$arrives);
  let assemblyFormat = "$number `threads` $threads (`arrives` $arrives^)? attr-dict";
  let hasVerifier = 1;
}
def Vxnv_BulkLoadOp : Vxnv_Effect<"bulk_load", [AllTypesMatch<["destination", "barrier"]>]> {
  let summary = "one thread starts copying a box to shared memory; its bytes (whole boxes) arrive at the barrier";
  let arguments = (ins Vxnv_Pointer:$destination, Vxnv_Pointer:$barrier, I64Attr:$map, Variadic<I32>:$coordinates);
  let assemblyFormat = "$map `[` $coordinates `]` `to` $destination `barrier` $barrier attr-dict `:` type($destination)";
}
def Vxnv_BulkStoreOp : Vxnv_Effect<"bulk_store"> {
  let summary = "one thread starts writing a box from shared memory, as part of its open group";
  let arguments = (ins Vxnv_Pointer:$source, I64Attr:$map, Variadic<I32>:$coordinates);
  let assemblyFormat = "$map `[` $coordinates `]` `from` $source attr-dict `:` type($source)";
}
def Vxnv_BulkCommitOp : Vxnv_Effect<"bulk_commit"> {
  let summary = "closes this thread's group of bulk stores";
  let assemblyFormat = "attr-dict";
}
def Vxnv_BulkWaitOp : Vxnv_Effect<"bulk_wait"> {
  let summary = "waits until at most the `pending` latest groups of this thread have not read their shared memory; `written`: are not complete";
  let arguments = (ins I64Attr:$pending, UnitAttr:$written);
  let assemblyFormat = "$pending (`written` $written^)? attr-dict";
}
def Vxnv_AsyncFenceOp : Vxnv_Effect<"async_fence"> {
  let summary = "what this thread wrote to shared memory is seen by bulk copies and products that start after it";
  let assemblyFormat = "attr-dict";
}
def Vxnv_SetRegistersOp : Vxnv_Effect<"set_registers"> {
  let summary = "the warpgroup has `count` registers per thread from here on; `more`: it waits until they are free";
  let arguments = (ins I64Attr:$count, UnitAttr:$more);
  let assemblyFormat = "$count (`more` $more^)? attr-dict";
}
def Vxnv_WgmmaFenceOp : Vxnv_Effect<"wgmma_fence"> {
  let summary = "the registers of the next products are as written";
  let assemblyFormat = "attr-dict";
}
def Vxnv_WgmmaOp : Vxnv_Effect<"wgmma"> {
  let summary = "the warpgroup starts sums + A · B on 32 bytes of depth in shared memory, described by two words; `first`: A · B";
  let description = "The words: PTX ISA, matrix descriptors. `columns` / 2 sums per thread.";
  let arguments = (ins Variadic<Vxnv_Sum>:$sums, I64:$a, I64:$b, TypeAttr:$element, UnitAttr:$a_across, UnitAttr:$b_across, UnitAttr:$first);
  let results = (outs Variadic<Vxnv_Sum>:$results);
  let assemblyFormat = [{
    `(` $sums `)` `a` (`across` $a_across^)? $a `b` (`across` $b_across^)? $b `of` $element (`first` $first^)? attr-dict `:`
    custom<SameTypes>(type($sums), type($results))
  }];
  let hasVerifier = 1;
}
def Vxnv_WgmmaRegistersOp : Vxnv_Effect<"wgmma_registers"> {
  let summary = "as `wgmma`, with A in four registers: the warpgroup's rows, 32 bytes of depth";
  let arguments = (ins Variadic<F32>:$sums, I32:$a0, I32:$a1, I32:$a2, I32:$a3, I64:$b, TypeAttr:$element, UnitAttr:$b_across, UnitAttr:$first);
  let results = (outs Variadic<F32>:$results);
  let assemblyFormat = [{
    `(` $sums `)` `a` `(` $a0 `,` $a1 `,` $a2 `,` $a3 `)` `b` (`across` $b_across^)? $b `of` $element (`first` $first^)? attr-dict `:` type($results)
  }];
  let hasVerifier = 1;
}
def Vxnv_WgmmaCommitOp : Vxnv_Effect<"wgmma_commit"> {
  let summary = "closes the group of products";
  let assemblyFormat = "attr-dict";
}
def Vxnv_WgmmaWaitOp : Vxnv_Effect<"wgmma_wait"> {
  let summary = "waits until at most the `pending` latest groups run; the sums of the others may be read from the results";
  let arguments = (ins Variadic<Vxnv_Sum>:$sums, I64Attr:$pending);
  let results = (outs Variadic<Vxnv_Sum>:$results);
  let assemblyFormat = "$pending `(` $sums `)` attr-dict `:` custom<SameTypes>(type($sums), type($results))";
  let hasVerifier = 1;
}
#endif
