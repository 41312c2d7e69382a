// Conditions in a kernel as expressions that a launch evaluates.
#pragma once

#include "artifact/size_expr.h"

#include <llvm/ADT/STLFunctionalExtras.h>
#include <mlir/IR/Value.h>

#include <optional>

namespace vortex::target::gpu {

/// The value of an integer in a vxt.kernel over the launch slots, its arguments; nothing if it depends on more than those, on operations
/// that size expressions do not have, or takes more than `mostSteps`. Exact for all arguments whose extents are not negative and whose products fit 63 bits.
/// `isExtent`: the slots that are never negative.
std::optional<artifact::SizeExpr> launchCondition(mlir::Value value, llvm::function_ref<bool(unsigned slot)> isExtent,
                                                  size_t mostSteps);

}  // namespace vortex::target::gpu
