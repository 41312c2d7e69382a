// vx-expand-roles: the structure of vxnv becomes its instructions.
#pragma once

#include "ir/vxnv.h"

#include "mlir/Pass/Pass.h"

#include <memory>

namespace vortex::target::gpu::hopper {

/// Before: verified `vxnv.roles` in vxt.kernel ops. After: branches of warpgroups; slots, parities and single sums are values that loops
/// carry, and waits, fences and descriptors are operations.
void expandRoles(mlir::ModuleOp module);

/// `vx-expand-roles` for vx-opt.
std::unique_ptr<mlir::Pass> createExpandRolesPass();
void registerHopperPasses();

}  // namespace vortex::target::gpu::hopper
