#include "ir/simplify.h"

#include "mlir/IR/Iterators.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace vortex::ir {

static bool mayLoseExtents(mlir::Operation* op) {
  return llvm::isa_and_nonnull<mlir::arith::ArithDialect>(op->getDialect()) &&
         llvm::any_of(op->getResultTypes(), [](mlir::Type type) {
           auto tile = llvm::dyn_cast<mlir::RankedTensorType>(type);
           return tile && !tile.hasStaticShape();
         });
}

static void eraseDead(mlir::ModuleOp module) {
  module->walk<mlir::WalkOrder::PostOrder, mlir::ReverseIterator>([](mlir::Operation* op) {
    if (mlir::isOpTriviallyDead(op))
      op->erase();
  });
}

mlir::RewritePatternSet canonicalPatterns(mlir::MLIRContext* context) {
  mlir::RewritePatternSet patterns(context);
  for (mlir::Dialect* dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (mlir::RegisteredOperationName name : context->getRegisteredOperations())
    name.getCanonicalizationPatterns(patterns, context);
  llvm::erase_if(patterns.getNativePatterns(), [](const std::unique_ptr<mlir::RewritePattern>& pattern) {
    return llvm::any_of(pattern->getGeneratedOps(), [](mlir::OperationName made) {
      return made.getStringRef() == mlir::arith::MulSIExtendedOp::getOperationName() ||
             made.getStringRef() == mlir::arith::MulUIExtendedOp::getOperationName();
    });
  });
  return patterns;
}

void simplify(mlir::ModuleOp module, mlir::RewritePatternSet more) {
  mlir::RewritePatternSet canonical = canonicalPatterns(module.getContext());
  for (std::unique_ptr<mlir::RewritePattern>& pattern : canonical.getNativePatterns())
    more.add(std::move(pattern));
  llvm::SmallVector<mlir::Operation*> operations;
  module.getBodyRegion().walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation* op) {
    if (!mayLoseExtents(op))
      operations.push_back(op);
  });
  mlir::GreedyRewriteConfig config;
  config.strictMode = mlir::GreedyRewriteStrictness::ExistingAndNewOps;
  config.scope = &module.getBodyRegion();
  // Not converging within the iteration limit leaves correct code.
  (void)mlir::applyOpPatternsAndFold(operations, std::move(more), config);
  eraseDead(module);
}

void simplify(mlir::ModuleOp module) { simplify(module, mlir::RewritePatternSet(module.getContext())); }

}  // namespace vortex::ir
