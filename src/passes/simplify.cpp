#include "passes/simplify.h"

#include "ir/simplify.h"
#include "ir/vx.h"
#include "passes/narrow_operands.h"

namespace vortex::passes {

namespace {

using mlir::Value;

/// Rounding what was widened gives it back. Operands of products meet this: they are computed wide and stored narrow.
void dropRoundTrips(mlir::ModuleOp module) {
  mlir::OpBuilder builder(module.getContext());
  module.walk([&](mlir::Operation* op) {
    if (!llvm::isa<mlir::arith::TruncFOp, mlir::arith::TruncIOp>(op) ||
        !llvm::isa<mlir::RankedTensorType>(op->getResult(0).getType()))
      return;
    if (Value narrow = beforeWidening(builder, op->getOperand(0), mlir::getElementTypeOrSelf(op->getResult(0))))
      op->getResult(0).replaceAllUsesWith(narrow);
  });
}

struct SimplifyPass : mlir::PassWrapper<SimplifyPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SimplifyPass)
  llvm::StringRef getArgument() const override { return "vx-simplify"; }
  llvm::StringRef getDescription() const override { return "canonicalize without folding away the extents of tiles"; }
  void runOnOperation() override {
    dropRoundTrips(getOperation());
    ir::simplify(getOperation());
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> createSimplifyPass() { return std::make_unique<SimplifyPass>(); }

}  // namespace vortex::passes
