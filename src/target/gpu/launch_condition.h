// Conditions in a kernel as expressions that a launch evaluates.
#pragma once

#include "size/expr.h"

#include <llvm/ADT/STLFunctionalExtras.h>
#include <mlir/IR/Value.h>

namespace vortex::target::gpu {

/// The value of an integer in a vxt.kernel over the launch's arguments; null if it depends on more than those, on operations that size expressions
/// do not have, or takes more than `mostSteps`. Exact for all arguments whose extents are not negative and whose products fit 63 bits.
/// `argumentOf`: what an argument of the vxt.kernel, a launch slot, is.
size::Expr launchCondition(mlir::Value value, llvm::function_ref<size::Expr(unsigned slot)> argumentOf,
                           size_t mostSteps);

}  // namespace vortex::target::gpu
