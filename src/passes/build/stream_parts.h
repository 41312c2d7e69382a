// Pieces of a streamed axis (StreamParts): blocks leave what the loop has of theirs in memory, a later phase combines it in the order of the axis.
#pragma once

#include "passes/plan/stream_loop.h"

namespace vortex::passes {

/// Bounds the loop of a phase, which may be bounded by masks, to piece `number` of its axis of `extent` elements. Where nothing is left it runs over
/// masked elements of the piece, or none.
void boundToPiece(mlir::scf::ForOp loop, mlir::Value extent, mlir::Value piece, mlir::Value number);

}  // namespace vortex::passes
