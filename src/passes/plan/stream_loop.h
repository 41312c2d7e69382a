// Loops of online softmax in the normal form of stream_reductions.h, taken apart again.
#pragma once

#include "ir/size_attr.h"
#include "ir/vx.h"

#include <mlir/Dialect/SCF/IR/SCF.h>

#include <optional>

namespace vortex::passes {

/// On a loop in a phase: the dimension of the scores that the block has several rows along. Without it that is the last but one.
inline constexpr llvm::StringLiteral kRowsAttr = "vx.rows";

/// Per chunk of the streamed axis: scores from one product, their running maximum, sums of exponentials, and a second product that adds to carried sums
/// what the exponentials weigh. Numbers are those of the loop's carried values.
struct StreamLoop {
  struct Sum {
    unsigned number;
    mlir::Value terms;  ///< along the rows and the chunk
  };

  mlir::scf::ForOp loop;
  ir::DotOp scoresProduct, product;
  mlir::Value scores, exponentials;  ///< exp(scores − maximum), or exp2
  mlir::Value weights;               ///< the left operand of the second product, before it is rounded
  bool isBase2 = false;
  unsigned maximum = 0, accumulator = 0;
  llvm::SmallVector<Sum, 1> sums;
  unsigned rows = 0;   ///< dimension of the scores
  mlir::Value extent;  ///< of the streamed axis, which loads are at the loop's variable
};

/// How launches cut the streamed axis into pieces.
struct StreamParts {
  unsigned rows = 0;          ///< the dimension of the scores that blocks have several rows along
  ir::SizeAttr piece, count;  ///< elements of the axis per piece, a multiple of every chunk; pieces
  /// Of each result of the loop, a temporary: piece, number among the dimensions before the rows, dimensions of the result from the rows on.
  llvm::SmallVector<unsigned, 3> temporaries;
};

/// Nothing: the loop has another form.
std::optional<StreamLoop> matchStream(mlir::scf::ForOp loop);
/// Lets a loop whose step is used for nothing else have chunks of another size.
void setChunkSize(mlir::scf::ForOp loop, int64_t size);

}  // namespace vortex::passes
