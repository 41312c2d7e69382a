// Folding and canonicalization that is safe on tiles with run-time extents.
#pragma once

#include "ir/vx.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"

namespace vortex::ir {

/// What the dialects call canonical, but for upper halves of products: MLIR makes operations of two results of them, which code of threads, one
/// value per operation, has none of.
mlir::RewritePatternSet canonicalPatterns(mlir::MLIRContext* context);

/// Canonicalizes to a fixpoint, with `more` patterns if given, and erases dead operations. Use it instead of MLIR's canonicalizer: that one
/// folds `x - x` of a `tensor<?xi32>` to `dense<0> : tensor<?xi32>`, a constant that has lost its extents. Here arith operations on tiles
/// with dynamic extents stay as they are, also where branches around them are merged.
void simplify(mlir::ModuleOp module, mlir::RewritePatternSet more);
void simplify(mlir::ModuleOp module);

}  // namespace vortex::ir
