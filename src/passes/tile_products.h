#pragma once

#include "passes/plan/rules.h"

#include "mlir/IR/BuiltinOps.h"

namespace vortex::passes {

/// Tile code whose blocks each store a function of one product of two windows also runs as one persistent phase of bulk copies, in launches whose tensors such
/// copies can reach: where the target has a block tile of just the program's size (`rules.bulkTiles`). The product is of what BulkProducts
/// multiplies, its windows begin at the start of the depth, and what is stored follows from it, from other windows and scalars element by element. Blocks have no order,
/// so the phase takes them in groups that share what they read. All other launches run the kernel as it was.
///
/// Before: vx with at most one kernel, which is no whole-tensor kernel; products taken in steps are one (merge_products.h).
void runTileProductsInBulk(mlir::ModuleOp module, const TensorSchedule& rules);

}  // namespace vortex::passes
