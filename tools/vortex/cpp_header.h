#pragma once

#include "artifact/artifact.h"

#include <span>
#include <string>

namespace vortex::tools {

/// A C++20 header with a class per kernel that loads the artifact that suits a device and launches it with typed arguments, through
/// vortex/runtime.h. `kernels`: the same kernel for one target each; their parameters agree.
std::string cppHeader(std::span<const artifact::Kernel> kernels, const std::string& source);

}  // namespace vortex::tools
