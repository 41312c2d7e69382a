#include "irgen/prune.h"

#include "ir/simplify.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

namespace vortex::irgen {

namespace {

/// Drops unused results and operands, and operands that are yielded by nobody else.
struct PruneThreads : mlir::OpRewritePattern<ir::ThreadsOp> {
  using OpRewritePattern::OpRewritePattern;

  mlir::LogicalResult matchAndRewrite(ir::ThreadsOp op, mlir::PatternRewriter& rewriter) const override {
    mlir::Block& body = op.getBody().front();
    auto yield = llvm::cast<ir::YieldOp>(body.getTerminator());
    llvm::SmallVector<mlir::Value> inputs, yielded, kept;
    llvm::SmallVector<mlir::Type> types;
    llvm::BitVector deadArguments(body.getNumArguments());
    for (auto [index, input] : llvm::enumerate(op.getInputs())) {
      if (body.getArgument(4 + index).use_empty())
        deadArguments.set(4 + index);
      else
        inputs.push_back(input);
    }
    for (auto [result, value] : llvm::zip(op.getOutputs(), yield.getValues()))
      if (!result.use_empty()) {
        kept.push_back(result);
        yielded.push_back(value);
        types.push_back(result.getType());
      }
    if (deadArguments.none() && kept.size() == op.getOutputs().size())
      return mlir::failure();
    rewriter.modifyOpInPlace(yield, [&] { yield.getValuesMutable().assign(yielded); });
    body.eraseArguments(deadArguments);
    auto pruned = rewriter.create<ir::ThreadsOp>(op.getLoc(), types, op.getNx(), op.getNy(), op.getNz(), inputs);
    pruned->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.inlineRegionBefore(op.getBody(), pruned.getBody(), pruned.getBody().end());
    for (auto [old, result] : llvm::zip(kept, pruned.getOutputs()))
      rewriter.replaceAllUsesWith(old, result);
    rewriter.eraseOp(op);
    return mlir::success();
  }
};

/// A region without effects and without results does nothing.
struct EraseIdleThreads : mlir::OpRewritePattern<ir::ThreadsOp> {
  using OpRewritePattern::OpRewritePattern;

  mlir::LogicalResult matchAndRewrite(ir::ThreadsOp op, mlir::PatternRewriter& rewriter) const override {
    if (!mlir::isOpTriviallyDead(op))
      return mlir::failure();
    rewriter.eraseOp(op);
    return mlir::success();
  }
};

}  // namespace

void prune(mlir::ModuleOp module) {
  mlir::MLIRContext* context = module.getContext();
  auto simplify = [&] {
    mlir::RewritePatternSet patterns(context);
    patterns.add<PruneThreads, EraseIdleThreads>(context);
    ir::simplify(module, std::move(patterns));
  };
  simplify();
  mlir::IRRewriter rewriter(context);
  mlir::DominanceInfo dominance(module);
  mlir::eliminateCommonSubExpressions(rewriter, dominance, module);
  simplify();  // results that only dead code used
}

}  // namespace vortex::irgen
