#include "target/gpu/threads_as_one.h"

#include "base/check.h"
#include "ir/size_attr.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/IR/Dominance.h>
#include <mlir/IR/IRMapping.h>
#include <mlir/IR/Matchers.h>
#include <mlir/IR/PatternMatch.h>
#include <mlir/Interfaces/SideEffectInterfaces.h>
#include <mlir/Transforms/CSE.h>
#include <mlir/Transforms/GreedyPatternRewriteDriver.h>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using mlir::Value;

std::optional<int64_t> tripsOf(scf::ForOp loop) {
  auto low = mlir::getConstantIntValue(loop.getLowerBound()), high = mlir::getConstantIntValue(loop.getUpperBound()),
       step = mlir::getConstantIntValue(loop.getStep());
  if (!low || !high || !step || *step <= 0 || *high - *low > kMostTrips)
    return std::nullopt;
  return *high > *low ? static_cast<int64_t>(llvm::divideCeil(*high - *low, *step)) : 0;
}

namespace {

//===-- equal indices become equal values ---------------------------------------------------------------------===//

mlir::IntegerAttr constantOf(Value value) {
  mlir::IntegerAttr known;
  return mlir::matchPattern(value, mlir::m_Constant(&known)) ? known : mlir::IntegerAttr();
}

/// `x + c`, c a constant.
std::optional<std::pair<Value, mlir::IntegerAttr>> asSum(Value value) {
  auto add = value.getDefiningOp<arith::AddIOp>();
  mlir::IntegerAttr known = add ? constantOf(add.getRhs()) : mlir::IntegerAttr();
  return known ? std::optional(std::pair(add.getLhs(), known)) : std::nullopt;
}

Value plus(mlir::PatternRewriter& b, mlir::Location loc, Value x, const llvm::APInt& c) {
  return b.create<arith::AddIOp>(loc, x, b.create<arith::ConstantOp>(loc, b.getIntegerAttr(x.getType(), c)));
}

/// a + (x + c) and (x + c) + a are (a + x) + c; arithmetic wraps, so that this holds for all numbers.
struct ConstantsLast : mlir::OpRewritePattern<arith::AddIOp> {
  using OpRewritePattern::OpRewritePattern;
  mlir::LogicalResult matchAndRewrite(arith::AddIOp op, mlir::PatternRewriter& b) const override {
    if (!op.getType().isIntOrIndex() || constantOf(op.getRhs()) || constantOf(op.getLhs()))
      return mlir::failure();
    for (auto [sum, other] : {std::pair(op.getRhs(), op.getLhs()), std::pair(op.getLhs(), op.getRhs())})
      if (auto parts = asSum(sum)) {
        Value inner = b.create<arith::AddIOp>(op.getLoc(), other, parts->first);
        b.replaceOp(op, plus(b, op.getLoc(), inner, parts->second.getValue()));
        return mlir::success();
      }
    return mlir::failure();
  }
};

struct DifferenceAsSum : mlir::OpRewritePattern<arith::SubIOp> {
  using OpRewritePattern::OpRewritePattern;
  mlir::LogicalResult matchAndRewrite(arith::SubIOp op, mlir::PatternRewriter& b) const override {
    mlir::IntegerAttr known = constantOf(op.getRhs());
    if (!known || !op.getType().isIntOrIndex())
      return mlir::failure();
    b.replaceOp(op, plus(b, op.getLoc(), op.getLhs(), -known.getValue()));
    return mlir::success();
  }
};

/// A cast that keeps the low bits: of x + c it is that of x plus that of c.
template <typename Cast> struct CastFirst : mlir::OpRewritePattern<Cast> {
  using mlir::OpRewritePattern<Cast>::OpRewritePattern;
  mlir::LogicalResult matchAndRewrite(Cast op, mlir::PatternRewriter& b) const override {
    auto bits = [](mlir::Type type) { return type.isIndex() ? 64U : type.getIntOrFloatBitWidth(); };
    auto parts = op.getIn().getType().isIntOrIndex() ? asSum(op.getIn()) : std::nullopt;
    if (!parts || bits(op.getType()) > bits(op.getIn().getType()))
      return mlir::failure();
    Value inner = b.create<Cast>(op.getLoc(), op.getType(), parts->first);
    b.replaceOp(op, plus(b, op.getLoc(), inner, parts->second.getValue().sextOrTrunc(bits(op.getType()))));
    return mlir::success();
  }
};

void shareEqual(ir::ThreadsOp op) {
  mlir::MLIRContext* context = op.getContext();
  mlir::RewritePatternSet patterns(context);
  context->getLoadedDialect<arith::ArithDialect>()->getCanonicalizationPatterns(patterns);
  for (mlir::RegisteredOperationName name : context->getRegisteredOperations())
    if (name.getDialectNamespace() == "arith")
      name.getCanonicalizationPatterns(patterns, context);
  scf::IfOp::getCanonicalizationPatterns(patterns, context);
  patterns.add<ConstantsLast, DifferenceAsSum, CastFirst<arith::IndexCastOp>, CastFirst<arith::IndexCastUIOp>,
               CastFirst<arith::TruncIOp>>(context);
  llvm::SmallVector<mlir::Operation*> inside;
  op.getBody().walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation* each) { inside.push_back(each); });
  mlir::GreedyRewriteConfig config;
  config.strictMode = mlir::GreedyRewriteStrictness::ExistingAndNewOps;
  config.scope = &op.getBody();
  // Not converging within the iteration limit leaves correct code.
  (void)mlir::applyOpPatternsAndFold(inside, std::move(patterns), config);
  mlir::IRRewriter rewriter(context);
  mlir::DominanceInfo dominance(op->getParentOp());
  mlir::eliminateCommonSubExpressions(rewriter, dominance, op);
}

//===-- several threads as one --------------------------------------------------------------------------------===//

/// The block once for each mapping, operation by operation, loops written out.
void writeOut(mlir::OpBuilder& b, mlir::Block& block, llvm::MutableArrayRef<mlir::IRMapping> threads) {
  for (mlir::Operation& op : block.without_terminator()) {
    auto loop = mlir::dyn_cast<scf::ForOp>(op);
    if (!loop) {
      for (mlir::IRMapping& mapping : threads)
        b.clone(op, mapping);
      continue;
    }
    VORTEX_CHECK(tripsOf(loop), "a loop of unknown length is written out");
    const int64_t low = *mlir::getConstantIntValue(loop.getLowerBound()),
                  step = *mlir::getConstantIntValue(loop.getStep());
    auto pass = [&](mlir::ValueRange from, mlir::ValueRange to) {
      for (mlir::IRMapping& mapping : threads) {
        llvm::SmallVector<Value> values;  // all before the first is replaced
        for (Value value : from)
          values.push_back(mapping.lookupOrDefault(value));
        mapping.map(to, values);
      }
    };
    pass(loop.getInitArgs(), loop.getRegionIterArgs());
    for (int64_t trip = 0, count = *tripsOf(loop); trip < count; ++trip) {
      mlir::Type type = loop.getInductionVar().getType();
      Value at = b.create<arith::ConstantOp>(loop.getLoc(), b.getIntegerAttr(type, low + trip * step));
      for (mlir::IRMapping& mapping : threads)
        mapping.map(loop.getInductionVar(), at);
      writeOut(b, *loop.getBody(), threads);
      pass(loop.getYieldedValues(), loop.getRegionIterArgs());
    }
    pass(loop.getRegionIterArgs(), loop.getResults());
  }
}

/// Minima and maxima with what is the same in all threads become their other side: as in blocks that these limits do not concern.
void dropLimits(ir::ThreadsOp op) {
  op.getBody().walk([&](mlir::Operation* limit) {
    if (!mlir::isa<arith::MaxUIOp, arith::MaxSIOp, arith::MinUIOp, arith::MinSIOp>(limit))
      return;
    for (unsigned side : {0U, 1U})
      if (isFixed(limit->getOperand(side), op.getBody()))
        return limit->getResult(0).replaceAllUsesWith(limit->getOperand(1 - side));
  });
}

}  // namespace

bool isFixed(Value value, mlir::Region& region) {
  mlir::Operation* op = value.getDefiningOp();
  if (!region.isAncestor(value.getParentRegion()))
    return true;
  return op && mlir::isPure(op) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isFixed(operand, region); });
}

ir::ThreadsOp writtenAsOne(ir::ThreadsOp op, const ThreadShape& shape, bool hasLimits) {
  mlir::OpBuilder b(op);
  mlir::Location loc = op.getLoc();
  auto constant = [&](int64_t value) -> Value { return b.create<arith::ConstantIndexOp>(loc, value); };
  Value extents[3];
  for (unsigned axis = 0; axis < 3; ++axis)
    extents[axis] = constant(axis == shape.axis ? shape.extents[axis] / shape.rows : shape.extents[axis]);
  auto joined = b.create<ir::ThreadsOp>(loc, mlir::TypeRange{}, extents[0], extents[1], extents[2], mlir::ValueRange{});
  mlir::Block& from = op.getBody().front();
  if (joined.getBody().empty())
    joined.getBody().emplaceBlock();
  mlir::Block& body = joined.getBody().front();
  if (body.getNumArguments() == 0)
    body.addArguments(from.getArgumentTypes(), llvm::SmallVector<mlir::Location>(from.getNumArguments(), loc));
  body.clear();
  b.setInsertionPointToStart(&body);
  llvm::SmallVector<mlir::IRMapping> threads(static_cast<size_t>(shape.rows));
  for (auto [row, mapping] : llvm::enumerate(threads)) {
    Value ids[3] = {body.getArgument(0), body.getArgument(1), body.getArgument(2)};
    Value& own = ids[shape.axis];
    if (shape.rows > 1)
      own = b.create<arith::AddIOp>(loc, b.create<arith::MulIOp>(loc, own, constant(shape.rows)),
                                    constant(static_cast<int64_t>(row)));
    Value linear = b.create<arith::MulIOp>(loc, ids[2], constant(shape.extents[1]));
    linear = b.create<arith::MulIOp>(loc, b.create<arith::AddIOp>(loc, linear, ids[1]), constant(shape.extents[0]));
    linear = b.create<arith::AddIOp>(loc, linear, ids[0]);
    mapping.map(from.getArguments(), mlir::ValueRange{ids[0], ids[1], ids[2], linear});
  }
  writeOut(b, from, threads);
  b.create<ir::YieldOp>(loc);
  if (!hasLimits)
    dropLimits(joined);
  shareEqual(joined);
  return joined;
}

ir::ThreadsOp onlyThreads(ir::KernelOp phase) {
  ir::ThreadsOp region;
  for (mlir::Operation& op : phase.getBody().front()) {
    if (auto threads = mlir::dyn_cast<ir::ThreadsOp>(op)) {
      if (region || threads.getNumResults() != 0 || !threads.getInputs().empty())
        return nullptr;
      region = threads;
    } else if (!op.hasTrait<mlir::OpTrait::IsTerminator>() && !mlir::isPure(&op)) {
      return nullptr;
    }
  }
  return region;
}

std::optional<ThreadShape> blockShape(ir::KernelOp phase, ir::ThreadsOp region) {
  ThreadShape shape;
  for (auto [axis, extent] : llvm::enumerate(std::array{region.getNx(), region.getNy(), region.getNz()})) {
    const auto known = mlir::getConstantIntValue(extent);
    const auto block = ir::constantSize(mlir::cast<ir::SizeAttr>((*phase.getBlock())[axis]));
    if (!known || known != block)
      return std::nullopt;
    shape.extents[axis] = *known;
  }
  return shape;
}

void replaceThreads(ir::KernelOp phase, ir::ThreadsOp region, const ThreadShape& shape) {
  llvm::SmallVector<mlir::Attribute> block(phase.getBlock()->getValue());
  phase.walk([&](ir::BlockDimOp dim) {
    mlir::OpBuilder at(dim);
    dim.replaceAllUsesWith(
        at.create<arith::ConstantIndexOp>(dim.getLoc(), shape.extents[static_cast<unsigned>(dim.getAxis())])
            .getResult());
    dim.erase();
  });
  block[shape.axis] = ir::sizeConstant(phase.getContext(), shape.extents[shape.axis] / shape.rows);
  phase.setBlockAttr(mlir::ArrayAttr::get(phase.getContext(), block));
  region.erase();
}

}  // namespace vortex::target::gpu
