#include "irgen/prune.h"

#include "ir/simplify.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/CSE.h"

#include "llvm/ADT/SetVector.h"

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

/// A few integer operations on thread ids cost less than a value per thread in memory, and keep their access patterns visible: a
/// region computes them again instead of taking them over a cut.
struct RecomputeInputs : mlir::OpRewritePattern<ir::ThreadsOp> {
  using OpRewritePattern::OpRewritePattern;
  static constexpr unsigned kMaxOps = 8;

  mlir::LogicalResult matchAndRewrite(ir::ThreadsOp op, mlir::PatternRewriter& rewriter) const override {
    mlir::Block& body = op.getBody().front();
    for (auto [index, input] : llvm::enumerate(op.getInputs())) {
      mlir::BlockArgument argument = body.getArgument(4 + static_cast<unsigned>(index));
      auto producer = input.getDefiningOp<ir::ThreadsOp>();
      if (argument.use_empty() || !producer || producer == op || producer.getNx() != op.getNx() ||
          producer.getNy() != op.getNy() || producer.getNz() != op.getNz())
        continue;
      auto yield = llvm::cast<ir::YieldOp>(producer.getBody().front().getTerminator());
      mlir::Value yielded = yield.getValues()[llvm::cast<mlir::OpResult>(input).getResultNumber()];
      llvm::SetVector<mlir::Operation*> slice;
      if (!collect(yielded, producer, slice))
        continue;
      mlir::OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(&body);
      mlir::IRMapping mapping;
      for (unsigned i = 0; i < 4; ++i)
        mapping.map(producer.getBody().getArgument(i), body.getArgument(i));
      for (mlir::Operation* part : slice)
        rewriter.clone(*part, mapping);
      rewriter.replaceAllUsesWith(argument, mapping.lookupOrDefault(yielded));
      return mlir::success();
    }
    return mlir::failure();
  }

  /// Operations inside the producer that `value` needs, operands first; false when one is not plain integer arithmetic on ids.
  static bool collect(mlir::Value value, ir::ThreadsOp producer, llvm::SetVector<mlir::Operation*>& slice) {
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value))
      return argument.getOwner() == &producer.getBody().front()
                 ? argument.getArgNumber() < 4
                 : !producer->isAncestor(argument.getOwner()->getParentOp());
    mlir::Operation* op = value.getDefiningOp();
    if (!producer->isProperAncestor(op))
      return true;
    bool plain = op->getBlock() == &producer.getBody().front() && value.getType().isIntOrIndex() &&
                 (llvm::isa<ir::IntOp>(op) || llvm::isa<mlir::arith::ArithDialect>(op->getDialect()));
    if (!plain || slice.size() >= kMaxOps)
      return false;
    for (mlir::Value operand : op->getOperands())
      if (!collect(operand, producer, slice))
        return false;
    slice.insert(op);
    return slice.size() <= kMaxOps;
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
    patterns.add<PruneThreads, RecomputeInputs, EraseIdleThreads>(context);
    ir::simplify(module, std::move(patterns));
  };
  simplify();
  mlir::IRRewriter rewriter(context);
  mlir::DominanceInfo dominance(module);
  mlir::eliminateCommonSubExpressions(rewriter, dominance, module);
  simplify();  // results that only dead code used
}

}  // namespace vortex::irgen
