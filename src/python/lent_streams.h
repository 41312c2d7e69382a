// Streams of other libraries that work was launched in. One Stream per handle, whoever asks: it knows which kernels stopped.
#pragma once

#include "vortex/runtime.h"

#include <vector>

namespace vortex::python {

/// The stream of a handle. The interpreter's lock is held. Errors: as Device::wrapStream.
Result<Stream> lentStream(const Device& device, uint64_t handle);

/// Those asked for lately, the last one first; at most kLentStreams per device.
inline constexpr size_t kLentStreams = 64;
std::vector<Stream> lentStreams(const Device& device);

}  // namespace vortex::python
