#pragma once

#include <cstdint>
#include <span>

namespace vortex::hal {

/// The bytes of a strided tensor: element (i, j, …) is [address + i * strides[0] + …, + elementBytes). Strides in bytes.
struct Footprint {
  uint64_t address = 0;
  uint32_t elementBytes = 1;
  std::span<const int64_t> extents;
  std::span<const int64_t> byteStrides;
};

/// False only if no byte belongs to both. Exact for views of one array (rows, columns, interleaved channels); when the search
/// exceeds its work limit, true.
bool mayOverlap(const Footprint& lhs, const Footprint& rhs);

/// False only if different indices never share a byte. The same exactness.
bool mayOverlapItself(const Footprint& footprint);

}  // namespace vortex::hal
