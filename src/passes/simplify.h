#pragma once

#include "mlir/Pass/Pass.h"

#include <memory>

namespace vortex::passes {

/// `vx-simplify`: ir::simplify on the module. Before and after: any vx; results do not change.
std::unique_ptr<mlir::Pass> createSimplifyPass();

}  // namespace vortex::passes
