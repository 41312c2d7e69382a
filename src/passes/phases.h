#pragma once

#include "ir/vx.h"
#include "passes/plan/rules.h"

#include "mlir/Pass/Pass.h"

#include <memory>

namespace vortex::passes {

/// Gets the text of the plan of a kernel, or of one after the other of its pieces.
using PlanObserver = std::function<void(llvm::StringRef text)>;

/// Steps of launches stand in so many others at most, less one, as those of artifacts.
inline constexpr unsigned kMostNesting = 32;

/// Before: `vx.kernel` marked `whole_tensor`. After: one or more block-level phases with grids; values that cross phases are
/// temporaries of the entry. Block-level kernels stay as they are. Fails (with a diagnostic) only where a temporary's extents are not an
/// expression over the arguments, where steps nest too deep, and where `@fused` does not hold.
mlir::LogicalResult makePhases(mlir::ModuleOp module, const TensorSchedule& rules, const PlanObserver& observer = {});

/// `vx-phases` for vx-opt.
std::unique_ptr<mlir::Pass> createPhasesPass(TensorSchedule rules = {}, PlanObserver observer = {});

}  // namespace vortex::passes
