// Which phases a launch runs.
#pragma once

#include "artifact/artifact.h"

namespace vortex::artifact {

/// Walks the steps of a valid kernel: appends the value of every let to `slots`, which end before them, and to `values`. Returns the phases
/// taken, in order.
std::vector<uint32_t> takeSteps(const Kernel& kernel, size::Values& values, std::vector<uint64_t>& slots);

/// Per temporary: one of these phases writes it.
std::vector<bool> writtenTemporaries(const Kernel& kernel, const std::vector<uint32_t>& phases);

/// Steps that run all phases of a kernel in order.
std::vector<Step> inOrder(size_t phases);

}  // namespace vortex::artifact
