#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Products of a matrix and a vector (the right operand has one column or the left one has one row, a static extent) become sums of elementwise
/// products along the matrix's depth, as it lies in memory: each element is used once, so there is nothing to keep for others, and the sum reads at the
/// speed of memory. `sumsRows`: also those with one row, which CPUs read faster as products. Before: whole-tensor code outside loops. Integers that
/// are widened by the product stay products.
void sumVectorProducts(ir::KernelOp kernel, bool sumsRows);

}  // namespace vortex::passes
