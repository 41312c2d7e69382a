#include "lang/sema/builtin/table.h"
#include "lang/sema/builtin/collections.h"
#include "lang/sema/builtin/device.h"
#include "lang/sema/builtin/host.h"
#include "lang/sema/builtin/math.h"
#include "lang/sema/builtin/tensor.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

constexpr auto kEverywhere = BuiltinPlace::Anywhere;
constexpr auto kHost = BuiltinPlace::Host;
constexpr auto kKernelOnly = BuiltinPlace::Kernel;
constexpr uint8_t kElementwise = kNumber | kTensor;

constexpr BuiltinRow kRows[] = {
#define VORTEX_FLOAT_ROW(id, name, ...) {name, Builtin::id, kEverywhere, kElementwise, "x", checkFloatMath},
    VORTEX_FLOAT_FUNCTIONS(VORTEX_FLOAT_ROW)
#undef VORTEX_FLOAT_ROW
        {"atan2", Builtin::Atan2, kEverywhere, kElementwise, "y, x", checkFloatMath},
    {"pow", Builtin::Pow, kEverywhere, kElementwise, "x, y", checkFloatMath},
    {"fma", Builtin::Fma, kEverywhere, kElementwise, "a, b, c", checkFloatMath},
    {"abs", Builtin::Abs, kEverywhere, kElementwise, "x", checkNumericMath},
    {"sign", Builtin::Sign, kEverywhere, kElementwise, "x", checkNumericMath},
    {"clamp", Builtin::Clamp, kEverywhere, kElementwise, "x, low, high", checkNumericMath},
    {"min", Builtin::Min, kEverywhere, kElementwise, "x, y?, dim?, keepdim?", checkMinMax},
    {"max", Builtin::Max, kEverywhere, kElementwise, "x, y?, dim?, keepdim?", checkMinMax},
    {"select", Builtin::Select, kEverywhere, kNoMethod, "condition, a, b", checkSelect},
    {"is_nan", Builtin::IsNan, kEverywhere, kElementwise, "x", checkFloatTest},
    {"is_inf", Builtin::IsInf, kEverywhere, kElementwise, "x", checkFloatTest},
    {"to_bits", Builtin::ToBits, kEverywhere, kElementwise, "x", checkToBits},
    {"from_bits", Builtin::FromBits, kEverywhere, kNoMethod, "bits", checkFromBits},
    {"popcount", Builtin::Popcount, kEverywhere, kElementwise, "x", checkIntegerMath},
    {"clz", Builtin::Clz, kEverywhere, kElementwise, "x", checkIntegerMath},
    {"ctz", Builtin::Ctz, kEverywhere, kElementwise, "x", checkIntegerMath},
    {"mul_hi", Builtin::MulHi, kEverywhere, kElementwise, "a, b", checkIntegerMath},
    {"ceil_div", Builtin::CeilDiv, kEverywhere, kElementwise, "a, b", checkIntegerMath},
    {"range", Builtin::VecRange, kEverywhere, kNoMethod, "begin, end?, step?", checkRangeCall},

    {"zeros", Builtin::Zeros, kEverywhere, kNoMethod, "shape?", checkZeros},
    {"Tensor.zeros", Builtin::Zeros, kEverywhere, kNoMethod, "shape?", checkZeros},
    {"full", Builtin::Full, kEverywhere, kNoMethod, "value, shape?", checkFull},
    {"Tensor.full", Builtin::Full, kEverywhere, kNoMethod, "value, shape?", checkFull},
    {"arange", Builtin::Arange, kKernelOnly, kNoMethod, "count", checkArange},
    {"transpose", Builtin::Transpose, kKernelOnly, kTensor, "x, permutation?", checkTranspose},
    {"reshape", Builtin::Reshape, kKernelOnly, kTensor, "x, shape", checkReshape},
    {"broadcast", Builtin::Reshape, kKernelOnly, kTensor, "x, shape", checkBroadcastTo},
    {"sum", Builtin::ReduceSum, kKernelOnly, kTensor, "x, dim?, keepdim?", checkReduction},
    {"prod", Builtin::ReduceProd, kKernelOnly, kTensor, "x, dim?, keepdim?", checkReduction},
    {"mean", Builtin::ReduceMean, kKernelOnly, kTensor, "x, dim?, keepdim?", checkReduction},
    {"softmax", Builtin::Softmax, kKernelOnly, kTensor, "x, dim?", checkAlongDim},
    {"cumsum", Builtin::CumSum, kKernelOnly, kTensor, "x, dim?", checkAlongDim},
    {"mask_upper_triangle", Builtin::MaskUpperTriangle, kKernelOnly, kTensor, "x, value, offset?",
     checkMaskUpperTriangle},

    {"sync_block", Builtin::SyncBlock, kKernelOnly, kNoMethod, "", checkBarrier},
    {"sync_grid", Builtin::SyncGrid, kKernelOnly, kNoMethod, "", checkBarrier},
    {"sync_warp", Builtin::SyncWarp, kKernelOnly, kNoMethod, "", checkBarrier},
    {"stage", Builtin::Stage, kKernelOnly, kNoMethod, "view", checkStage},
    {"async_stage", Builtin::AsyncStage, kKernelOnly, kNoMethod, "view, buffer", checkAsyncStage},
    {"warp.shuffle_xor", Builtin::ShuffleXor, kKernelOnly, kNoMethod, "value, mask", checkShuffle},
    {"warp.shuffle_up", Builtin::ShuffleUp, kKernelOnly, kNoMethod, "value, delta", checkShuffle},
    {"warp.shuffle_down", Builtin::ShuffleDown, kKernelOnly, kNoMethod, "value, delta", checkShuffle},
    {"warp.broadcast", Builtin::ShuffleIndex, kKernelOnly, kNoMethod, "value, lane", checkShuffle},
    {"warp.sum", Builtin::WarpSum, kKernelOnly, kNoMethod, "value", checkThreadReduce},
    {"warp.max", Builtin::WarpMax, kKernelOnly, kNoMethod, "value", checkThreadReduce},
    {"warp.min", Builtin::WarpMin, kKernelOnly, kNoMethod, "value", checkThreadReduce},
    {"warp.ballot", Builtin::WarpBallot, kKernelOnly, kNoMethod, "condition", checkThreadVote},
    {"warp.any", Builtin::WarpAny, kKernelOnly, kNoMethod, "condition", checkThreadVote},
    {"warp.all", Builtin::WarpAll, kKernelOnly, kNoMethod, "condition", checkThreadVote},
    {"block.sum", Builtin::BlockSum, kKernelOnly, kNoMethod, "value", checkThreadReduce},
    {"block.max", Builtin::BlockMax, kKernelOnly, kNoMethod, "value", checkThreadReduce},
    {"block.min", Builtin::BlockMin, kKernelOnly, kNoMethod, "value", checkThreadReduce},
    {"block.any", Builtin::BlockAny, kKernelOnly, kNoMethod, "condition", checkThreadVote},
    {"block.all", Builtin::BlockAll, kKernelOnly, kNoMethod, "condition", checkThreadVote},
    {"atomic_add", Builtin::AtomicAdd, kKernelOnly, kNoMethod, "place, value, order?, scope?", checkAtomic},
    {"atomic_min", Builtin::AtomicMin, kKernelOnly, kNoMethod, "place, value, order?, scope?", checkAtomic},
    {"atomic_max", Builtin::AtomicMax, kKernelOnly, kNoMethod, "place, value, order?, scope?", checkAtomic},
    {"atomic_and", Builtin::AtomicAnd, kKernelOnly, kNoMethod, "place, value, order?, scope?", checkAtomic},
    {"atomic_or", Builtin::AtomicOr, kKernelOnly, kNoMethod, "place, value, order?, scope?", checkAtomic},
    {"atomic_xor", Builtin::AtomicXor, kKernelOnly, kNoMethod, "place, value, order?, scope?", checkAtomic},
    {"atomic_exchange", Builtin::AtomicExchange, kKernelOnly, kNoMethod, "place, value, order?, scope?", checkAtomic},
    {"atomic_compare_exchange", Builtin::AtomicCompareExchange, kKernelOnly, kNoMethod,
     "place, expected, value, order?, scope?", checkAtomic},
    {"atomic_load", Builtin::AtomicLoad, kKernelOnly, kNoMethod, "place, order?, scope?", checkAtomic},
    {"atomic_store", Builtin::AtomicStore, kKernelOnly, kNoMethod, "place, value, order?, scope?", checkAtomic},

    {"print", Builtin::Print, kEverywhere, kNoMethod, "*", checkPrint},
    {"format", Builtin::Format, kHost, kNoMethod, "*", checkPrint},
    {"assert", Builtin::Assert, kEverywhere, kNoMethod, "condition, *", checkAssert},
    {"assert_close", Builtin::AssertClose, kHost, kNoMethod, "actual, expected, rtol?, atol?", checkAssertPair},
    {"assert_eq", Builtin::AssertEqual, kHost, kNoMethod, "actual, expected", checkAssertPair},
    {"args", Builtin::Args, kHost, kNoMethod, "", checkArgs},
    {"load_npy", Builtin::LoadNpy, kHost, kNoMethod, "path", checkLoadNpy},
    {"save_npy", Builtin::SaveNpy, kHost, kNoMethod, "path, value", checkSaveNpy},
    {"read_file", Builtin::ReadFile, kHost, kNoMethod, "path", checkFile},
    {"read_text", Builtin::ReadText, kHost, kNoMethod, "path", checkFile},
    {"write_file", Builtin::WriteFile, kHost, kNoMethod, "path, content", checkFile},
    {"random.normal", Builtin::RandomNormal, kHost, kNoMethod, "shape, seed?, mean?, std?", checkRandom},
    {"random.uniform", Builtin::RandomUniform, kHost, kNoMethod, "shape, seed?, low?, high?", checkRandom},
    {"random.integer", Builtin::RandomInteger, kHost, kNoMethod, "shape, seed?, low?, high?", checkRandom},
    {"time", Builtin::Time, kHost, kNoMethod, "closure", checkTime},
    {"exit", Builtin::Exit, kHost, kNoMethod, "status?", checkExit},
    {"parse_int", Builtin::ParseInt, kHost, kText, "text", checkParse},
    {"parse_float", Builtin::ParseFloat, kHost, kText, "text", checkParse},
    {"to_text", Builtin::ToText, kHost, kAny, "value", checkToText},
    {"Tensor.from_host", Builtin::FromHost, kHost, kNoMethod, "values, shape?", checkFromHost},
    {"to_host", Builtin::ToHost, kHost, kTensor, "tensor", checkToHost},
    {"copy", Builtin::Copy, kEverywhere, kTensor | kVec, "value", checkCopy},
    {"len", Builtin::Len, kEverywhere, kTensor | kVec | kText | kArray, "value", checkLen},
    {"push", Builtin::Push, kHost, kVec, "vec, value", checkPush},
    {"pop", Builtin::Pop, kHost, kVec, "vec", checkPop},
    {"Vec.filled", Builtin::VecFill, kHost, kNoMethod, "count, value", checkVecFill},
    {"Vec.range", Builtin::VecRange, kHost, kNoMethod, "begin, end", checkVecRange},
    {"map", Builtin::Map, kHost, kVec, "vec, closure", checkMap},
    {"fold", Builtin::Fold, kHost, kVec, "vec, initial, closure", checkFold},
    {"sort", Builtin::SortVec, kHost, kVec, "vec", checkSort},
};

// Only as methods: their plain names are too common to take.
bool onlyMethod(std::string_view name) {
  for (std::string_view method : {"to_host", "copy", "len", "push", "pop", "map", "fold", "sort"})
    if (name == method)
      return true;
  return false;
}

uint8_t receiverBit(Type type) {
  switch (type->kind) {
  case TypeKind::Scalar: return kNumber;
  case TypeKind::Tensor: return kTensor;
  case TypeKind::Vec: return kVec;
  case TypeKind::String: return kText;
  case TypeKind::Array: return kArray;
  default: return 0;
  }
}

}  // namespace

const BuiltinRow* findBuiltin(std::string_view name) {
  if (onlyMethod(name))
    return nullptr;
  for (const BuiltinRow& row : kRows)
    if (row.name == name)
      return &row;
  return nullptr;
}
const BuiltinRow* findBuiltinMethod(std::string_view name, Type receiver) {
  for (const BuiltinRow& row : kRows)
    if (row.name == name && (row.receivers & receiverBit(receiver)) != 0)
      return &row;
  return nullptr;
}
bool isBuiltinName(std::string_view name) { return findBuiltin(name) != nullptr; }
bool isBuiltinMethod(std::string_view name) {
  for (const BuiltinRow& row : kRows)
    if (row.name == name && row.receivers != kNoMethod)
      return true;
  return false;
}
std::optional<BuiltinPlace> placeOfBuiltin(std::string_view name) {
  std::optional<BuiltinPlace> place;
  for (const BuiltinRow& row : kRows)
    if (row.name == name)
      place = !place || *place == row.place ? row.place : BuiltinPlace::Anywhere;
  return place;
}
bool isBuiltinNamespace(std::string_view name) {
  return name == "Tensor" || name == "Vec" || name == "random" || name == "warp" || name == "block";
}
std::vector<std::string> builtinsIn(std::string_view space) {
  std::vector<std::string> names;
  for (const BuiltinRow& row : kRows)
    if (row.name.size() > space.size() && row.name.substr(0, space.size()) == space && row.name[space.size()] == '.')
      names.emplace_back(row.name.substr(space.size() + 1));
  return names;
}
std::vector<std::string> builtinMethodsOf(Type receiver) {
  std::vector<std::string> names;
  for (const BuiltinRow& row : kRows)
    if ((row.receivers & receiverBit(receiver)) != 0)
      names.emplace_back(row.name);
  return names;
}
void addBuiltinNames(std::vector<std::string>& names) {
  for (const BuiltinRow& row : kRows)
    if (row.name.find('.') == std::string_view::npos && !onlyMethod(row.name))
      names.emplace_back(row.name);
}

}  // namespace vortex::lang
