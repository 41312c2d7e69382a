// How the dimensions of a reshape's two sides correspond.
#pragma once

#include "ir/vx.h"

namespace vortex::ir {

/// `prefix` leading and `suffix` trailing dimensions are equal, those between are regrouped.
struct ReshapeParts {
  unsigned prefix, suffix;
};
ReshapeParts reshapeParts(ReshapeOp op);
/// The dimension of the source that dimension `dim` of the result is; -1: it is regrouped.
int64_t sourceDim(ReshapeOp op, int64_t dim);
/// The dimension of the source in which neighbours along dimension `dim` of the result are neighbours: where several are regrouped, that is known of
/// the innermost of them if one stands for them all in the source. -1: there is none.
int64_t steppedDim(ReshapeOp op, int64_t dim);
/// The same as sourceDim the other way round.
int64_t resultDim(ReshapeOp op, int64_t dim);

}  // namespace vortex::ir
