// Writes the kernels and steps of a plan. It decides nothing, and cannot fail.
#pragma once

#include "ir/launch.h"
#include "passes/plan/launch_plan.h"

#include <string>

namespace vortex::passes {

/// Appends the plan's steps to the launch, and a kernel per phase before the planned one, whose argument list is the entry's. `nextName`: of the
/// next kernel, from the kind of phase.
void buildPhases(const KernelPlan& plan, ir::EntryOp entry, ir::LaunchBuilder& launch,
                 llvm::function_ref<std::string(llvm::StringRef kind)> nextName);

}  // namespace vortex::passes
