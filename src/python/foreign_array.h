// Memory of other libraries, before a device has taken it.
#pragma once

#include "vortex/tensor.h"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

namespace vortex::python {

/// Memory of another library: where its first element lies, and how its elements do.
struct ForeignArray {
  uint64_t address;
  DType type;
  std::vector<int64_t> extents, strides;  ///< strides in elements
  bool isReadOnly;
  nanobind::handle owner;
  int gpu = -1;  ///< index of the GPU whose memory it is; -1: host memory
};

inline bool isAligned(const ForeignArray& from) {
  for (const int64_t extent : from.extents)
    if (extent == 0)
      return true;
  return from.address % byteSize(from.type) == 0;
}

}  // namespace vortex::python
