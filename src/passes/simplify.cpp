#include "passes/simplify.h"

#include "ir/simplify.h"

namespace vortex::passes {

namespace {

struct SimplifyPass : mlir::PassWrapper<SimplifyPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SimplifyPass)
  llvm::StringRef getArgument() const override { return "vx-simplify"; }
  llvm::StringRef getDescription() const override { return "canonicalize without folding away the extents of tiles"; }
  void runOnOperation() override { ir::simplify(getOperation()); }
};

}  // namespace

std::unique_ptr<mlir::Pass> createSimplifyPass() { return std::make_unique<SimplifyPass>(); }

}  // namespace vortex::passes
