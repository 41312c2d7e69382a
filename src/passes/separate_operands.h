#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Gives operands of matrix products that start from one load a load each: in `x @ transpose(x)` rows and columns of the result would
/// otherwise be the same axis, which no block can have a piece of. Nothing is computed twice: each operand is packed by itself anyhow.
void separateOperands(ir::KernelOp kernel);

}  // namespace vortex::passes
