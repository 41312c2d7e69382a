// Metal kernels with the names and meanings of Apple's metal-cpp, on the CPU and on NVIDIA GPUs.
//
//   namespace MTL = vortex::metal::MTL;      // on macOS: #include <Metal/Metal.hpp> instead of this header and these lines
//   namespace NS = vortex::metal::NS;
//
// Link libvortex_metal. docs/metal.md says what differs.
#pragma once

#include "vortex/metal/capture.h"
#include "vortex/metal/commands.h"
#include "vortex/metal/device.h"
