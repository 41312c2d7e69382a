#pragma once

#include "passes/plan/launch_plan.h"

namespace vortex::passes {

/// Blocks that run at once, as a number that the launch computes; null: not asked yet.
using Workers = ir::SizeAttr;

/// Plans `kernel`, a whole-tensor kernel or a piece of one. Its temporaries and computed numbers become arguments of the entry. Null, with a
/// diagnostic, where the extents of a temporary are no expression over the arguments.
std::unique_ptr<KernelPlan> planKernel(mlir::ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel,
                                       const TensorSchedule& rules, Workers workers);

}  // namespace vortex::passes
