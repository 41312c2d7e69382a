#include "artifact/tensor_map.h"

#include "base/text.h"

namespace vortex::artifact {

using base::concat;
using size::Op;

namespace {

// CUDA Driver API, cuTensorMapEncodeTiled. Strides may be in any order, equal or zero: seen on an H200.
constexpr int64_t kAlignment = 16;
constexpr int64_t kExtentEnd = int64_t{1} << 32, kStrideEnd = int64_t{1} << 40;
constexpr uint32_t kMaxBox = 256;

}  // namespace

template <typename E> std::string shapeError(const TensorMapOf<E>& map) {
  if (map.type > ScalarType::F64)
    return "its elements have no known type";
  if (map.roundToTf32 && map.type != ScalarType::F32)
    return concat("it rounds ", name(map.type), " to tf32");
  if (map.rank == 0 || map.rank > kMaxMapRank)
    return concat("it has ", map.rank, " dimensions instead of 1 to ", kMaxMapRank);
  for (uint32_t i = 0; i < map.rank; ++i)
    if (map.box[i] == 0 || map.box[i] > kMaxBox)
      return concat("its box has ", map.box[i], " elements in dimension ", i, " instead of 1 to ", kMaxBox);
  const uint32_t swizzle = map.swizzleBytes, innerBytes = map.box[0] * byteSize(map.type);
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return concat("it has a swizzle of ", swizzle, " bytes instead of 0, 32, 64 or 128");
  if (innerBytes % kAlignment != 0)
    return concat("rows of its box have ", innerBytes, " bytes, no multiple of ", kAlignment);
  if (swizzle != 0 && innerBytes > swizzle)
    return concat("rows of its box have ", innerBytes, " bytes, its swizzle ", swizzle);
  return {};
}
template std::string shapeError(const TensorMapOf<int64_t>&);
template std::string shapeError(const TensorMapOf<size::Id>&);
template std::string shapeError(const TensorMapOf<size::Expr>&);

std::string encodingError(const TensorMapOf<int64_t>& map) {
  if (std::string error = shapeError(map); !error.empty())
    return error;
  if (map.address % kAlignment != 0)
    return concat("its address is ", map.address, ", no multiple of ", kAlignment);
  for (uint32_t i = 0; i < map.rank; ++i)
    if (map.extents[i] < 1 || map.extents[i] >= kExtentEnd)
      return concat("extent ", i, " is ", map.extents[i], " instead of 1 to ", kExtentEnd - 1);
  for (uint32_t i = 1; i < map.rank; ++i)
    if (const int64_t stride = map.byteStrides[i - 1]; stride < 0 || stride >= kStrideEnd || stride % kAlignment != 0)
      return concat("the stride of dimension ", i, " is ", stride, " bytes instead of a multiple of ", kAlignment,
                    " from 0 to ", kStrideEnd - kAlignment);
  return {};
}

size::Expr isEncodable(const TensorMapOf<size::Expr>& map) {
  size::Arena& arena = map.address.arena();
  const auto both = [](size::Expr a, size::Expr b) { return make(Op::And, a, b); };
  const auto isAligned = [](size::Expr a) { return make(Op::Equal, make(Op::Mod, a, kAlignment), 0); };
  const auto isFrom = [&](size::Expr a, int64_t low, int64_t end) {
    return both(make(Op::Less, arena.constant(low - 1), a), make(Op::Less, a, end));
  };
  size::Expr all = isAligned(map.address);
  for (uint32_t i = 0; i < map.rank; ++i)
    all = both(all, isFrom(map.extents[i], 1, kExtentEnd));
  for (uint32_t i = 0; i + 1 < map.rank; ++i)
    all = both(all, both(isAligned(map.byteStrides[i]), isFrom(map.byteStrides[i], 0, kStrideEnd)));
  return all;
}

}  // namespace vortex::artifact
