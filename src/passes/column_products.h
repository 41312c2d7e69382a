#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Products whose right operand has one column (a static extent) become sums of elementwise products along the rows of the left one: each
/// element is used once, so there is nothing to keep for others, and the sum reads at the speed of memory. Before: whole-tensor code outside
/// loops. Integers that are widened by the product stay products.
void sumColumnProducts(ir::KernelOp kernel);

}  // namespace vortex::passes
