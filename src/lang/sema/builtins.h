// Names of everything the language provides without a body: intrinsics, math, tensor operations, host library.
#pragma once

#include "base/float_functions.h"

#include <cstdint>
#include <string_view>

namespace vortex::lang {

// Argument layout of Expr::args where it is not the plain operand list (defaults are filled in by the checker):
//   AssertClose: a, b, rtol (f64), atol (f64)      AssertEqual: a, b           Assert: condition, message (String) or none
//   Print, Format: values; `text` holds the format when the first argument was a literal with {}
//   LoadNpy: path; the type is the tensor (shape entries may be Opaque or unbound dimension variables: bound at run time)
//   SaveNpy: path, tensor     ReadFile, ReadText: path     WriteFile: path, Vec<u8> or String
//   RandomNormal: shape (MakeArray of usize), seed (u64), mean, deviation   RandomUniform: shape, seed, low, high
//   RandomInteger: shape, seed, low, high (element type)
//   Zeros: shape (MakeArray of usize) on the host      Full: value, shape on the host      Arange: count
//   FromHost: Vec (moved), shape (MakeArray of usize) if written; the type is the tensor      ToHost, Copy, ToDevice, Len: the value (through references)
//   Push: &mut Vec, value     Pop: &mut Vec     VecFill: count, value     VecRange: begin, end     Map: Vec, closure
//   Fold: Vec, initial, closure     SortVec: &mut Vec     ParseInt, ParseFloat: String     Time: closure; result f64 seconds
//   Extent: tensor; ints: dim
// X(Name, "spelling in diagnostics", …)
// clang-format off
#define VORTEX_BUILTINS(X) \
  /* elementwise on scalars and tensors; operands already have one type and shape */ \
  VORTEX_FLOAT_FUNCTIONS(X) X(Atan2, "atan2") X(Abs, "abs") X(Sign, "sign") X(Fma, "fma") \
  X(Pow, "pow") X(Min, "min") X(Max, "max") X(Clamp, "clamp") X(Select, "select") X(IsNan, "is_nan") \
  X(IsInf, "is_inf") X(Popcount, "popcount") X(Clz, "clz") X(Ctz, "ctz") X(MulHi, "mul_hi") \
  X(CeilDiv, "ceil_div") X(ToBits, "to_bits") X(FromBits, "from_bits") \
  /* tensors; integer attributes in Expr::ints */ \
  X(Zeros, "zeros") X(Full, "full") X(Arange, "arange") X(Transpose, "transpose") \
  /* ints: permutation */ \
  X(Reshape, "reshape") X(ReduceSum, "sum") X(ReduceProd, "prod") X(ReduceMax, "max") X(ReduceMin, "min") \
  X(ReduceMean, "mean") \
  /* ints: dims reduced (non-negative, ascending); result type tells keepdim */ \
  X(Softmax, "softmax") \
  /* ints: the dim */ \
  X(CumSum, "cumsum") \
  /* ints: the dim */ \
  X(MaskUpperTriangle, "mask_upper_triangle") \
  /* args: tensor, value */ \
  X(Extent, "shape") \
  /* ints: dim; args: tensor */ \
  /* position; uniform: BlockId, BlockDim, GridDim. ints: axis 0..2 */ \
  X(ThreadId, "thread.id") X(ThreadLocalId, "thread.local_id") X(ThreadGlobalId, "thread.global_id") \
  X(BlockId, "block.id") X(BlockDim, "block.dim") X(GridDim, "grid.dim") X(WarpId, "warp.id") \
  X(LaneId, "warp.lane_id") X(WarpSize, "warp.size") X(SyncBlock, "sync_block") X(SyncGrid, "sync_grid") X(SyncWarp, "sync_warp") \
  X(ShuffleXor, "warp.shuffle_xor") X(ShuffleUp, "warp.shuffle_up") X(ShuffleDown, "warp.shuffle_down") \
  X(ShuffleIndex, "warp.broadcast") X(WarpSum, "warp.sum") X(WarpMax, "warp.max") X(WarpMin, "warp.min") \
  X(WarpBallot, "warp.ballot") X(WarpAny, "warp.any") X(WarpAll, "warp.all") \
  /* over the threads of the block, with the barrier that they imply: ints as SyncBlock */ \
  X(BlockSum, "block.sum") X(BlockMax, "block.max") X(BlockMin, "block.min") X(BlockAny, "block.any") \
  X(BlockAll, "block.all") \
  /* staging. Stage: view (the value of `x = stage(view)`); ints: {barrier before it}. AsyncStage: view, buffer; ints: {barrier before it} */ \
  /* SyncBlock, SyncGrid: ints {closes a group of copies, most recent groups that may stay in flight}, empty without staging */ \
  X(Stage, "stage") X(AsyncStage, "async_stage") \
  /* atomics: args[0] is an Element place; ints: {order (0 relaxed, 1 acquire, 2 release, 3 acq_rel), scope (0 block, 1 device, 2 system)} */ \
  X(AtomicAdd, "atomic_add") X(AtomicMin, "atomic_min") X(AtomicMax, "atomic_max") X(AtomicAnd, "atomic_and") \
  X(AtomicOr, "atomic_or") X(AtomicXor, "atomic_xor") X(AtomicExchange, "atomic_exchange") \
  X(AtomicCompareExchange, "atomic_compare_exchange") X(AtomicLoad, "atomic_load") \
  X(AtomicStore, "atomic_store") \
  /* host and kernel */ \
  X(Print, "print") X(Assert, "assert") X(Copy, "copy") X(Len, "len") \
  /* host */ \
  X(AssertClose, "assert_close") X(AssertEqual, "assert_eq") X(Args, "args") X(LoadNpy, "load_npy") \
  X(SaveNpy, "save_npy") X(ReadFile, "read_file") X(WriteFile, "write_file") X(ReadText, "read_text") \
  X(RandomNormal, "random.normal") X(RandomUniform, "random.uniform") X(RandomInteger, "random.integer") \
  X(FromHost, "Tensor.from_host") X(ToHost, "to_host") X(ToDevice, "to") X(Time, "time") \
  X(Push, "push") X(Pop, "pop") X(VecFill, "Vec.filled") X(VecRange, "Vec.range") X(Map, "map") \
  X(Fold, "fold") X(SortVec, "sort") X(ParseInt, "parse_int") X(ParseFloat, "parse_float") X(ToText, "to_text") \
  X(Format, "format") X(Exit, "exit")
// clang-format on

enum class Builtin : uint16_t {
#define VORTEX_BUILTIN_ENUM(name, ...) name,
  VORTEX_BUILTINS(VORTEX_BUILTIN_ENUM)
#undef VORTEX_BUILTIN_ENUM
};
std::string_view spelling(Builtin builtin);
/// Of the first group.
constexpr bool isElementwise(Builtin builtin) { return builtin <= Builtin::FromBits; }

}  // namespace vortex::lang
