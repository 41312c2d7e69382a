#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Gives operands of matrix products that start from one load a load each: in `x @ transpose(x)` rows and columns of the result would
/// otherwise be the same axis, which no block can have a piece of. Nothing is computed twice: each operand is packed by itself anyhow.
/// Then the same for every operation that makes two dimensions of a tile one axis, such as `x + transpose(x)`: one operand is read again, from
/// memory if it is the result of a reduction, product, scan or loop.
void separateOperands(ir::KernelOp kernel);

/// Makes reshapes of all dimensions into several others two: into one dimension, and from there. Each of them can be done piece by piece.
void flattenBetween(ir::KernelOp kernel);

}  // namespace vortex::passes
