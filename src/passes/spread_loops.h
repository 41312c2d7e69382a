// Loops of scalar code whose iterations do not meet: one thread of a grid runs each.
#pragma once

#include "ir/vx.h"

#include "mlir/IR/IRMapping.h"

namespace vortex::passes {

/// A loop marked ir::kIndependentAttr, and those that are all of its body, outermost first. Three at most: each gets an axis of the grid.
struct SpreadLoops {
  llvm::SmallVector<mlir::scf::ForOp, 3> loops;
  /// Iterations of each, as expressions over the entry's arguments. Null, of a loop alone: only the device knows, and a fixed number of threads
  /// takes them in turn.
  llvm::SmallVector<ir::SizeAttr, 3> counts;
};

/// Null: the iterations stay in order, since the loop is not marked, leaves values, or holds more than code of one thread.
/// `expressionOf` gives bounds; null where no launch knows them.
std::optional<SpreadLoops> findSpreadLoops(mlir::Operation* op,
                                           llvm::function_ref<ir::SizeAttr(mlir::Value)> expressionOf);

/// Threads can run the iterations of a loop in `op`, and the program says that they do not meet. Loops inside marked ones do not count.
bool holdsClaimedLoop(mlir::Operation* op);

/// Tiles whose elements the loops read.
llvm::SmallVector<mlir::Value> tilesReadIn(mlir::Operation* op);

/// Blocks and threads per block, three of each.
std::pair<mlir::ArrayAttr, mlir::ArrayAttr> gridOf(const SpreadLoops& spread);

/// What one block does, before vx.return. `values` has what the loops use from outside of them, and their bounds; `viewOf` is where the elements
/// of a tile lie.
void emitSpreadLoops(mlir::OpBuilder& builder, const SpreadLoops& spread, mlir::IRMapping& values,
                     llvm::function_ref<mlir::Value(mlir::Value tile)> viewOf);

}  // namespace vortex::passes
