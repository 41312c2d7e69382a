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
/// The same the other way round.
int64_t resultDim(ReshapeOp op, int64_t dim);

}  // namespace vortex::ir
