// What a combination computes of two values or of two tiles, element by element.
#pragma once

#include "ir/vx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace vortex::ir {

/// Max and min of floats are NaN where one of them is. `exchange` combines nothing: a check fails.
mlir::Value createCombine(mlir::OpBuilder& builder, mlir::Location loc, Combine kind, mlir::Value a, mlir::Value b,
                          mlir::arith::FastMathFlags flags = mlir::arith::FastMathFlags::none);

}  // namespace vortex::ir
