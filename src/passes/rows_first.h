// Reductions of dimensions on both sides of one that stays (the channels of images).
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Makes two reductions of each: of the dimensions behind the last that stays, then of the others. Rows are then reduced as rows are, each once, and
/// what is left is small.
void reduceRowsFirst(ir::KernelOp kernel);
/// The same the other way round: of the dimensions before the rows first, as columns that are as wide as all rows together.
void reduceColumnsFirst(ir::KernelOp kernel);
/// Not zero where columns first costs less: there are many rows for each result, so that what columns leave is little beside what they read, or rows are
/// so short that their own results would be more. Null: there are no such reductions, or products beside them.
ir::SizeAttr areColumnsCheaper(ir::KernelOp kernel);

}  // namespace vortex::passes
