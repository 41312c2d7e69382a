// Encoding refuses what an H200 with driver 580 was seen to refuse, and what the reference manual forbids.
#include "runtime/cuda/testdata/fake_maps.h"

#include "runtime/cuda/testdata/fake_state.h"

#include <algorithm>
#include <cstring>

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's.
namespace fake_cuda {

namespace {

constexpr char kMagic[8] = {'t', 'e', 'n', 's', 'o', 'r', 's', '\n'};
constexpr unsigned kMaxRank = 5, kMapAlignment = 64;

/// Of CUtensorMapDataType; 0: no such type.
unsigned elementBytes(int type) {
  constexpr unsigned bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  return type >= 0 && type < 13 ? bytes[type] : 0;
}

struct Request {
  int type;
  uint32_t rank;
  uint64_t address;
  const uint64_t *extents, *strides;
  const uint32_t *box, *elementStrides;
  int interleave, swizzle, promotion, fill;

  bool isLegal() const {
    if (elementBytes(type) == 0 || rank < 1 || rank > kMaxRank || address % 16 != 0)
      return false;
    // Interleaved layouts are for images, which nothing here is.
    if (interleave != 0 || swizzle < 0 || swizzle > 3 || promotion < 0 || promotion > 3 || fill != 0)
      return false;
    for (uint32_t i = 0; i < rank; ++i)
      if (extents[i] == 0 || extents[i] >> 32 != 0 || box[i] == 0 || box[i] > 256 || elementStrides[i] != 1)
        return false;
    for (uint32_t i = 0; i + 1 < rank; ++i)
      if (strides[i] % 16 != 0 || strides[i] >> 40 != 0)
        return false;
    const uint32_t row = box[0] * elementBytes(type);
    return row % 16 == 0 && (swizzle == 0 || row <= 16u << swizzle);
  }

  TensorMap encoded() const {
    TensorMap map = {};
    std::memcpy(map.magic, kMagic, sizeof kMagic);
    map.address = address;
    map.strides[0] = elementBytes(type);
    std::copy_n(extents, rank, map.extents);
    std::copy_n(strides, rank - 1, map.strides + 1);
    std::copy_n(box, rank, map.box);
    map.type = static_cast<uint8_t>(type);
    map.rank = static_cast<uint8_t>(rank);
    map.swizzle = static_cast<uint8_t>(swizzle);
    map.promotion = static_cast<uint8_t>(promotion);
    return map;
  }
};

/// Calls `visit(place in the box, address or null where it is outside)` for the elements of the box at `first`.
template <typename Visit> void forEachInBox(const TensorMap& map, const uint64_t (&first)[kMaxRank], Visit visit) {
  uint64_t elements = 1;
  for (unsigned i = 0; i < map.rank; ++i)
    elements *= map.box[i];
  for (uint64_t place = 0; place < elements; ++place) {
    uint64_t rest = place, address = map.address;
    bool isInside = true;
    for (unsigned i = 0; i < map.rank; ++i) {
      const uint64_t at = first[i] + rest % map.box[i];
      rest /= map.box[i];
      isInside &= at < map.extents[i];
      address += at * map.strides[i];
    }
    visit(place, isInside ? memory(address) : nullptr);
  }
}

}  // namespace

std::span<const TensorMap> mapsIn(const std::vector<uint64_t>& parameter) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(parameter.data());
  const size_t size = parameter.size() * sizeof(uint64_t);
  for (size_t at = 0; at + sizeof(TensorMap) <= size; at += kMapAlignment)
    if (std::memcmp(bytes + at, kMagic, sizeof kMagic) == 0)
      return {reinterpret_cast<const TensorMap*>(bytes + at), (size - at) / sizeof(TensorMap)};
  return {};
}

bool isAllocated(const TensorMap& map) {
  uint64_t last = map.address;
  for (unsigned i = 0; i < map.rank; ++i)
    last += (map.extents[i] - 1) * map.strides[i];
  const std::lock_guard lock(state().mutex);
  auto after = state().allocations.upper_bound(map.address);
  if (after == state().allocations.begin())
    return false;
  const auto& [start, allocation] = *--after;
  return last + map.strides[0] <= start + allocation.first;
}

void copyBoxes(std::span<const TensorMap> maps, const unsigned (&grid)[3]) {
  const TensorMap &from = maps[0], &to = maps[1];
  const size_t bytes = from.strides[0];
  std::vector<uint8_t> shared;
  for (uint64_t z = 0; z < grid[2]; ++z)
    for (uint64_t y = 0; y < grid[1]; ++y)
      for (uint64_t x = 0; x < grid[0]; ++x) {
        const uint64_t first[kMaxRank] = {x * from.box[0], y * from.box[1], z * from.box[2]};
        shared.clear();
        forEachInBox(from, first, [&](uint64_t, const uint8_t* element) {
          static constexpr uint8_t kZeros[8] = {};
          const uint8_t* read = element ? element : kZeros;
          shared.insert(shared.end(), read, read + bytes);
        });
        forEachInBox(to, first, [&](uint64_t place, uint8_t* element) {
          if (element)
            std::memcpy(element, shared.data() + place * bytes, bytes);
        });
      }
}

}  // namespace fake_cuda

using namespace fake_cuda;

#ifndef FAKE_CUDA_11_4
extern "C" int cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, uint64_t address, const uint64_t* extents,
                                      const uint64_t* strides, const uint32_t* box, const uint32_t* elementStrides,
                                      int interleave, int swizzle, int promotion, int fill) {
  if (const int code = enter("cuTensorMapEncodeTiled"); code != kSuccess)
    return code;
  if (setting("capability") < 90)
    return kNotSupported;
  const Request request{type,           rank,       address, extents,   strides, box,
                        elementStrides, interleave, swizzle, promotion, fill};
  if (reinterpret_cast<uintptr_t>(map) % kMapAlignment != 0 || !request.isLegal())
    return kInvalidValue;
  const TensorMap encoded = request.encoded();
  std::memcpy(map, &encoded, sizeof encoded);
  return kSuccess;
}
#endif
// NOLINTEND(readability-identifier-naming)
