#include "runtime/cuda/tensor_map.h"

#include "base/check.h"

#include <algorithm>
#include <bit>

namespace vortex::cuda {

namespace {

using artifact::ScalarType;

/// CUtensorMapDataType. Copies only move bits, except that of f32 to tf32, so types without one of their own go by their size.
int dataType(const artifact::TensorMapOf<int64_t>& map) {
  if (map.roundToTf32)
    return 11;
  switch (map.type) {
  case ScalarType::Bool:
  case ScalarType::U8:
  case ScalarType::I8:
  case ScalarType::F8E4M3:
  case ScalarType::F8E5M2: return 0;
  case ScalarType::U16:
  case ScalarType::I16: return 1;
  case ScalarType::U32: return 2;
  case ScalarType::I32: return 3;
  case ScalarType::U64: return 4;
  case ScalarType::I64: return 5;
  case ScalarType::F16: return 6;
  case ScalarType::F32: return 7;
  case ScalarType::F64: return 8;
  case ScalarType::BF16: return 9;
  }
  VORTEX_UNREACHABLE("scalar type %d", static_cast<int>(map.type));
}

/// CUtensorMapSwizzle: none, 32, 64 or 128 bytes.
int swizzle(uint32_t bytes) { return bytes == 0 ? 0 : std::countr_zero(bytes) - 4; }

constexpr int kNoInterleave = 0, kFillZeros = 0;
constexpr int kPromote256 =
    3;  ///< CU_TENSOR_MAP_L2_PROMOTION_L2_256B: what is read once more soon comes from the level 2 cache

}  // namespace

Result<hal::EncodedMap> encode(Context& context, const artifact::TensorMapOf<int64_t>& map) {
  const Api& api = context.api();
  if (!api.tensorMapEncode)
    return api.absentError("cuTensorMapEncodeTiled");
  uint64_t extents[artifact::kMaxMapRank], strides[artifact::kMaxMapRank];
  std::copy_n(map.extents, artifact::kMaxMapRank, extents);
  std::copy_n(map.byteStrides, artifact::kMaxMapRank - 1, strides);
  constexpr uint32_t kEveryElement[artifact::kMaxMapRank] = {1, 1, 1, 1, 1};
  hal::EncodedMap encoded;
  const Code code = api.tensorMapEncode(
      encoded.bytes.data(), dataType(map), map.rank, static_cast<DevicePointer>(map.address), extents, strides, map.box,
      kEveryElement, kNoInterleave, swizzle(map.swizzleBytes), kPromote256, kFillZeros);
  if (Result<void> done = context.check("the driver refuses it", code); !done)
    return done.takeError();
  return encoded;
}

}  // namespace vortex::cuda
