// Tensor maps of the stand-in for libcuda: what the caller gave, in bytes that can be read back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fake_cuda {

struct TensorMap {
  char magic[8];
  uint64_t address, extents[5], strides[5];  ///< in bytes; strides[0]: of an element
  uint16_t box[5];
  uint8_t type, rank, swizzle, promotion;
  uint8_t zeros[18];
};
static_assert(sizeof(TensorMap) == 128);

/// The maps at the end of an entry point's parameter.
std::span<const TensorMap> mapsIn(const std::vector<uint64_t>& parameter);
/// Whether all elements lie in one allocation.
bool isAllocated(const TensorMap& map);
/// The kernel "copy_boxes": block (x, y, z) copies the box there from the first map to the second.
void copyBoxes(std::span<const TensorMap> maps, const unsigned (&grid)[3]);

}  // namespace fake_cuda
