#include "ir/simplify.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
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

namespace {

/// A loop's counter that was made narrower and wide again is the counter where the loop's bounds say that nothing was cut off: launches compute
/// sizes from it.
template <typename Cast> struct WholeCounter : mlir::OpRewritePattern<Cast> {
  using mlir::OpRewritePattern<Cast>::OpRewritePattern;

  mlir::LogicalResult matchAndRewrite(Cast op, mlir::PatternRewriter& rewriter) const override {
    constexpr bool kIsSigned = std::is_same_v<Cast, mlir::arith::IndexCastOp>;
    auto narrow = op.getIn().template getDefiningOp<mlir::arith::TruncIOp>();
    auto wide =
        narrow ? narrow.getIn().template getDefiningOp<mlir::arith::IndexCastUIOp>() : mlir::arith::IndexCastUIOp();
    auto counter = wide ? llvm::dyn_cast<mlir::BlockArgument>(wide.getIn()) : mlir::BlockArgument();
    auto loop = counter ? llvm::dyn_cast<mlir::scf::ForOp>(counter.getOwner()->getParentOp()) : mlir::scf::ForOp();
    if (!loop || loop.getInductionVar() != counter ||
        mlir::getConstantIntValue(loop.getLowerBound()).value_or(-1) < 0 ||
        !fits(loop.getUpperBound(), op.getIn().getType(), kIsSigned))
      return mlir::failure();
    rewriter.replaceOp(op, counter);
    return mlir::success();
  }

private:
  /// All numbers from 0 up to `end`, without it, are of the type.
  static bool fits(mlir::Value end, mlir::Type type, bool isSigned) {
    const unsigned bits = type.getIntOrFloatBitWidth() - (isSigned ? 1 : 0);
    if (const std::optional<int64_t> constant = mlir::getConstantIntValue(end))
      return bits >= 63 || *constant <= int64_t(1) << bits;
    mlir::Operation* cast = end.getDefiningOp();
    const bool isCast = llvm::isa_and_nonnull<mlir::arith::IndexCastOp>(cast) ||
                        (!isSigned && llvm::isa_and_nonnull<mlir::arith::IndexCastUIOp>(cast));
    return isCast && cast->getOperand(0).getType() == type;
  }
};

}  // namespace

mlir::RewritePatternSet canonicalPatterns(mlir::MLIRContext* context) {
  mlir::RewritePatternSet patterns(context);
  for (mlir::Dialect* dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (mlir::RegisteredOperationName name : context->getRegisteredOperations())
    name.getCanonicalizationPatterns(patterns, context);
  patterns.add<WholeCounter<mlir::arith::IndexCastOp>, WholeCounter<mlir::arith::IndexCastUIOp>>(context);
  llvm::erase_if(patterns.getNativePatterns(), [](const std::unique_ptr<mlir::RewritePattern>& pattern) {
    return llvm::any_of(pattern->getGeneratedOps(), [](mlir::OperationName made) {
      return made.getStringRef() == mlir::arith::MulSIExtendedOp::getOperationName() ||
             made.getStringRef() == mlir::arith::MulUIExtendedOp::getOperationName();
    });
  });
  return patterns;
}

/// What is not done after these leaves correct code.
constexpr unsigned kMostRounds = 10;

/// The operations that are `wanted`, folded and rewritten; false: nothing changed.
static bool rewrite(mlir::ModuleOp module, const mlir::FrozenRewritePatternSet& patterns,
                    llvm::function_ref<bool(mlir::Operation*)> wanted, mlir::GreedyRewriteStrictness strictness) {
  llvm::SmallVector<mlir::Operation*> operations;
  module.getBodyRegion().walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation* op) {
    if (wanted(op))
      operations.push_back(op);
  });
  mlir::GreedyRewriteConfig config;
  config.strictMode = strictness;
  config.scope = &module.getBodyRegion();
  bool isChanged = false;
  (void)mlir::applyOpPatternsAndFold(operations, patterns, config, &isChanged);
  return isChanged;
}

void simplify(mlir::ModuleOp module, mlir::RewritePatternSet more) {
  mlir::RewritePatternSet canonical = canonicalPatterns(module.getContext());
  for (std::unique_ptr<mlir::RewritePattern>& pattern : canonical.getNativePatterns())
    more.add(std::move(pattern));
  const mlir::FrozenRewritePatternSet patterns(std::move(more));
  // Patterns of operations with regions move what is in them. The driver takes what is moved for new operations, tiles with run-time extents among
  // them: it is kept from those in rounds of their own.
  for (unsigned round = 0; round < kMostRounds; ++round) {
    (void)rewrite(
        module, patterns, [](mlir::Operation* op) { return op->getNumRegions() == 0 && !mayLoseExtents(op); },
        mlir::GreedyRewriteStrictness::ExistingAndNewOps);
    if (!rewrite(
            module, patterns, [](mlir::Operation* op) { return op->getNumRegions() != 0; },
            mlir::GreedyRewriteStrictness::ExistingOps))
      break;
  }
  eraseDead(module);
}

void simplify(mlir::ModuleOp module) { simplify(module, mlir::RewritePatternSet(module.getContext())); }

}  // namespace vortex::ir
