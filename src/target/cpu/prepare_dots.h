// Matrix products of a scheduled module, before emission: B is packed once, by a phase of its own.
#pragma once

#include "target/cpu/codegen/target.h"
#include "target/cpu/gemm/plan.h"

#include <mlir/IR/BuiltinOps.h>

namespace vortex::target::cpu {

/// On a vx.tile_store that packs a B operand, and on the vx.tile_load that reads it: the view's memory holds panels (gemm/gemm.h) instead
/// of rows. The view has B's dimensions, columns rounded up to whole panels; between the two operations the order of its elements is private.
inline constexpr llvm::StringLiteral kPanelsAttribute = "cpu.panels";
/// Beside it on those of tile code: the rows of A, or columns of B, of one tile. Every tile starts a panel.
inline constexpr llvm::StringLiteral kTileRowsAttribute = "cpu.tile_rows", kTileColumnsAttribute = "cpu.tile_columns";
/// Panels that one block of a packing phase writes.
inline constexpr int64_t kPanelsPerBlock = 16;
/// The depth of what it packs is a multiple of this, but for the last ones.
inline constexpr int64_t kPackedSteps = 32;

/// The plan that both phases of a product use, whatever its extents.
gemm::Plan dotPlan(const VectorFeatures& features, uint32_t elementBytes);

/// For every product outside of loops whose B is the same for all rows of the launch: a packing phase and a temporary are added, and the
/// product's B becomes `select(small, B, packed B)`, where `small` says at run time that packing does not pay (Plan::usesDirect).
/// packTileOperands does the like for tile code.
void prepareDots(mlir::ModuleOp module, const VectorFeatures& features);

}  // namespace vortex::target::cpu
