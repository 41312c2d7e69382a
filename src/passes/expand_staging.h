#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace vortex::passes {

/// Replaces `vx.stage_copy` by a tile load and store at the same place and drops commits and waits, for targets without copies that run
/// beside other code. Before: block-level vx. After: no staging operations; results are the same.
void expandStaging(mlir::ModuleOp module);

/// `vx-expand-staging`.
std::unique_ptr<mlir::Pass> createExpandStagingPass();

}  // namespace vortex::passes
