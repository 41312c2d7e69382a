// Reductions over a few elements that do not lie together, as pooling has them: computed element by element.
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Makes one reduction of two of the same kind, one of the other's result: largest of largest, sums of sums.
void mergeReductions(ir::KernelOp kernel);

/// Writes reductions along dimensions of known extents, at most 16 elements in all and a dimension that stays behind one of them, as elementwise work on
/// slices. Blocks that reduce rows or columns would have two or three elements for a thread or a warp. `ofRows`: also those along the last dimension alone,
/// of at most 8 elements, for targets whose vectors run along another one then.
void unrollSmallReductions(ir::KernelOp kernel, bool ofRows);

}  // namespace vortex::passes
