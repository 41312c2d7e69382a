// How a bulk tensor copy sees global memory: the argument of NVIDIA's cuTensorMapEncodeTiled, before it is encoded.
#pragma once

#include "artifact/scalar_type.h"
#include "size/evaluate.h"

#include <cstdint>
#include <string>

namespace vortex::artifact {

inline constexpr uint32_t kMaxMapRank = 5;

/// Copies move whole boxes: what lies outside the extents is read as zeros and not written. Inside a box, and in shared memory, dimension
/// 0 runs fastest. `E`: size::Expr in the compiler, size::Id in an artifact, int64_t for one launch.
template <typename E> struct TensorMapOf {
  ScalarType type = ScalarType::F32;
  bool roundToTf32 = false;  ///< f32 values are rounded to the nearest tf32 while they are copied into shared memory
  uint32_t rank = 1;
  E address{};                       ///< of element (0, 0, …)
  E extents[kMaxMapRank]{};          ///< innermost first, as all below
  E byteStrides[kMaxMapRank - 1]{};  ///< of dimension 1 and up; elements of dimension 0 are neighbours
  uint32_t box[kMaxMapRank]{};
  /// 32, 64 or 128: the 16-byte pieces of each so many bytes are permuted by the row (layout/hopper.h). 0: not.
  uint32_t swizzleBytes = 0;
};
using TensorMap = TensorMapOf<size::Id>;

/// Why no launch can encode it: rank, box or swizzle; empty if one can.
template <typename E> std::string shapeError(const TensorMapOf<E>& map);
/// Why the driver does not encode it for this launch, with the numbers; empty if it does.
std::string encodingError(const TensorMapOf<int64_t>& map);
/// Not zero for the launches for which encodingError is empty; the shape is fine.
size::Expr isEncodable(const TensorMapOf<size::Expr>& map);

/// The same with `convert` of every expression.
template <typename To, typename From, typename F>
TensorMapOf<To> convertMap(const TensorMapOf<From>& map, F&& convert) {
  TensorMapOf<To> result{
      .type = map.type, .roundToTf32 = map.roundToTf32, .rank = map.rank, .swizzleBytes = map.swizzleBytes};
  result.address = convert(map.address);
  for (uint32_t i = 0; i < kMaxMapRank && i < map.rank; ++i) {
    result.extents[i] = convert(map.extents[i]);
    if (i > 0)
      result.byteStrides[i - 1] = convert(map.byteStrides[i - 1]);
    result.box[i] = map.box[i];
  }
  return result;
}

}  // namespace vortex::artifact
