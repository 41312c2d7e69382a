// Between `index` and integers of fixed width.
//
// MLIR 19 folds `arith.index_castui(arith.index_castui(%x : index) : i8) : index` to `%x` (`arith.index_cast` likewise), as if nothing were lost
// by way of the narrower type. So an index is narrowed by way of i64 and `arith.trunci`, which no fold undoes, and the verifiers of kernels
// refuse any other narrowing.
#pragma once

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace vortex::ir {

/// The low bits of `value` as `type`: an integer of at most 64 bits, or a tile or vector of such with the shape of `value`.
mlir::Value fromIndex(mlir::OpBuilder& builder, mlir::Location loc, mlir::Type type, mlir::Value value);

/// Fails, with an error at the operation, if an index cast below `op` makes an index narrower than 64 bits.
mlir::LogicalResult verifyIndexCasts(mlir::Operation* op);

}  // namespace vortex::ir
