// The device "metal3.1": kernels are printed as Metal source, read back by our reader and run on the CPU. It tries what `vortex build --target
// metal3.1` prints where no Apple GPU is.
#pragma once

#include "runtime/hal/driver.h"

namespace vortex::tools {

/// One device; its streams cannot be made where the Metal reader is not installed. Launches are complete when submit() returns. Tensors with
/// negative strides are refused.
std::unique_ptr<hal::Driver> createMetalModel();

}  // namespace vortex::tools
