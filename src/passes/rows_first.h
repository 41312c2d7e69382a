// Reductions of dimensions on both sides of one that stays (the channels of images).
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Makes two reductions of each: of the dimensions behind the last that stays, then of the others. Rows are then reduced as rows are, each once, and
/// what is left is small.
void reduceRowsFirst(ir::KernelOp kernel);

}  // namespace vortex::passes
