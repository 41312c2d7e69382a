#pragma once

#include "runtime/cuda/context.h"
#include "runtime/hal/launch.h"

namespace vortex::cuda {

/// The map as copies of the device read it; artifact::encodingError(map) is empty and the context current. Error: a driver that cannot.
Result<hal::EncodedMap> encode(Context& context, const artifact::TensorMapOf<int64_t>& map);

}  // namespace vortex::cuda
