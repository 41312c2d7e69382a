// The kernels of frontier.vx, compiled when Vortex is built.
#pragma once

#include "vortex/runtime.h"

namespace vortex::hvm::frontier {

/// Errors: the device runs none of the targets that they were compiled for.
Result<Kernel> loadPass(const Device& device);
Result<Kernel> loadStepAtomics(const Device& device);

}  // namespace vortex::hvm::frontier
