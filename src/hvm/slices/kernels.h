// The kernels of slices, compiled when Vortex is built.
#pragma once

#include "vortex/runtime.h"

namespace vortex::hvm::slices {

struct Kernels {
  Kernel reduce, spread, tidy, collect;
};

/// Errors: the device runs none of the targets that they were compiled for.
Result<Kernels> loadKernels(const Device& device);

}  // namespace vortex::hvm::slices
