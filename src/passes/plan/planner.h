#pragma once

#include "passes/plan/launch_plan.h"

namespace vortex::passes {

/// What a launch computes before a kernel.
struct KnownLets {
  ir::SizeAttr workers{};  ///< blocks that run at once; null: not asked yet
  bool areAllSet = true;   ///< others may follow: lets are set in the order of their numbers
};

/// Plans `kernel`, a whole-tensor kernel or a piece of one. Its temporaries and computed numbers become arguments of the entry. Null, with a
/// diagnostic, where the extents of a temporary are no expression over the arguments.
std::unique_ptr<KernelPlan> planKernel(mlir::ModuleOp module, ir::EntryOp entry, ir::KernelOp kernel,
                                       const TensorSchedule& rules, KnownLets lets);

}  // namespace vortex::passes
