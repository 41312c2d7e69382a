// Pieces of a streamed axis: blocks leave what the loop has of theirs in memory, a later phase combines it in the order of the axis.
#pragma once

#include "ir/size_attr.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace vortex::passes {

struct StreamParts {
  unsigned rows = 0;          ///< the dimension of the scores that blocks have several rows along
  ir::SizeAttr piece, count;  ///< elements of the axis per piece, a multiple of every chunk; pieces
  /// Of each result of the loop, a temporary: piece, number among the dimensions before the rows, dimensions of the result from the rows on.
  llvm::SmallVector<unsigned, 3> temporaries;
};

/// Bounds the loop of a phase, which may be bounded by masks, to piece `number` of its axis of `extent` elements. Where nothing is left it runs over
/// masked elements of the piece, or none.
void boundToPiece(mlir::scf::ForOp loop, mlir::Value extent, mlir::Value piece, mlir::Value number);

}  // namespace vortex::passes
