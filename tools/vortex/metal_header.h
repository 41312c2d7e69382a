#pragma once

#include "artifact/artifact.h"

#include <string>

namespace vortex::tools {

/// A self-contained C++ header of a kernel that reads nothing back that launches printed Metal source through metal-cpp or vortex::metal, whose names are the same: a class with the
/// source, which encodes a launch into a command buffer. Tensors are row-major and contiguous.
std::string metalHeader(const artifact::Kernel& kernel, const std::string& source);

}  // namespace vortex::tools
