// Launches of loaded kernels.
#pragma once

#include "python/arrays.h"

#include <vector>

namespace vortex::python {

/// A kernel with what every launch looks at.
struct BoundKernel {
  explicit BoundKernel(Kernel loaded)
      : kernel(std::move(loaded)), params(kernel.params()), resultCount(kernel.results().size()) {}
  Kernel kernel;
  std::vector<ParamInfo> params;
  size_t resultCount;
};

/// On the CPU the kernel has run when this returns, and its faults are told.
template <typename Work> Result<void> run(const Device& device, Stream& stream, const Work& work) {
  Result<void> done = work();
  if (device.target() != "cpu")
    return done;
  Result<void> ended = stream.synchronize();
  return done ? ended : done;
}

void bindLaunches(nb::module_& module);
void bindDirectLaunches(nb::module_& module);

}  // namespace vortex::python
