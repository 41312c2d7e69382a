// What is known about the values of a float expression.
#pragma once

#include <mlir/IR/Value.h>

#include <optional>

namespace vortex::analysis {

/// No element of `value` (a float scalar or tile) exceeds this, those that are NaN aside; infinity: nothing is known. Looks at arithmetic,
/// limits, and differences from a maximum of the same elements.
double upperBound(mlir::Value value);
/// None is below this, those that are NaN aside; −infinity: nothing is known.
double lowerBound(mlir::Value value);

/// Every element is 0, infinite, NaN or of a size in 2^-100 … 2^100: neither it nor its reciprocal is subnormal.
bool isNormal(mlir::Value value);

/// The constant that `value` is, or repeats.
std::optional<double> floatConstant(mlir::Value value);

/// Elements of `value` (f32 or wider) below `threshold` in magnitude are as good as zeros: all uses add them to constants beside which they
/// vanish.
bool isLostBelow(mlir::Value value, double threshold);

}  // namespace vortex::analysis
