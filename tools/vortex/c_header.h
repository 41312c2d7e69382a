#pragma once

#include "artifact/artifact.h"

#include <string>

namespace vortex::tools {

/// A self-contained C99 header that launches a CPU kernel's object: a typed `int32_t <kernel>(…)` that checks the constraints, allocates
/// scratch and temporaries and runs every block (in parallel under OpenMP). Tensors are row-major and contiguous; results are the
/// caller's memory, sized by `<kernel>_result<i>_extent<d>(…)`.
std::string cHeader(const artifact::Kernel& kernel);

}  // namespace vortex::tools
