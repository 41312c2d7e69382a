// A filter of 3 × 3 points issues nine loads for a result, of which a thread four rows high shares half. Which loads coincide is not predicted:
// the code is written out for one and for several rows, with constants of indices gathered, and the different loads are counted.
#include "target/gpu/neighbours.h"

#include "ir/size_attr.h"
#include "ir/vxt.h"
#include "target/gpu/access.h"
#include "target/gpu/straight.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/IR/Dominance.h>
#include <mlir/IR/IRMapping.h>
#include <mlir/IR/Matchers.h>
#include <mlir/IR/PatternMatch.h>
#include <mlir/Interfaces/SideEffectInterfaces.h>
#include <mlir/Transforms/CSE.h>
#include <mlir/Transforms/GreedyPatternRewriteDriver.h>

#include <set>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using mlir::Value;

namespace {

/// Two warps at least: a core holds 32 blocks and wants 64 warps.
constexpr int64_t kLeastThreads = 2 * ir::vxt::kWarpThreads;
/// Threads side by side whose accesses are one: half a warp's 4 bytes fill two sectors.
constexpr int64_t kLeastInRow = 16;
constexpr int64_t kMostRows = 4;
/// Of the code as written out, before what is the same is found.
constexpr int64_t kMostWrittenOut = 6000;
/// Loaded values take registers.
constexpr size_t kMostLoads = 80;

std::optional<int64_t> trips(scf::ForOp loop) {
  auto low = mlir::getConstantIntValue(loop.getLowerBound()), high = mlir::getConstantIntValue(loop.getUpperBound()),
       step = mlir::getConstantIntValue(loop.getStep());
  if (!low || !high || !step || *step <= 0 || *high - *low > kMostWrittenOut)
    return std::nullopt;
  return *high > *low ? static_cast<int64_t>(llvm::divideCeil(*high - *low, *step)) : 0;
}

bool isGlobal(Value view) { return mlir::cast<ir::ViewType>(view.getType()).getSpace() == ir::Space::Global; }

/// Operations of one run through the block, loops written out; more than kMostWrittenOut: it is none that can be.
int64_t operationsOf(mlir::Block& block, const llvm::DenseSet<Value>& written) {
  constexpr int64_t kNone = kMostWrittenOut + 1;
  int64_t count = 0;
  for (mlir::Operation& op : block) {
    ++count;
    if (auto branch = mlir::dyn_cast<scf::IfOp>(op)) {
      for (mlir::Region& side : branch->getRegions())
        count += side.empty() ? 0 : operationsOf(side.front(), written);
    } else if (auto loop = mlir::dyn_cast<scf::ForOp>(op)) {
      auto known = trips(loop);
      count += known ? *known * operationsOf(*loop.getBody(), written) : kNone;
    } else if (auto load = mlir::dyn_cast<ir::LoadOp>(op)) {
      count += isGlobal(load.getView()) && !written.contains(rootOf(load.getView())) ? 0 : kNone;
    } else if (auto store = mlir::dyn_cast<ir::StoreOp>(op)) {
      count += isGlobal(store.getView()) ? 0 : kNone;
    } else if (!op.hasTrait<mlir::OpTrait::IsTerminator>() && !mlir::isPure(&op)) {
      count += kNone;  // a wait, an end, a division by what may be zero
    }
    if (count > kMostWrittenOut)
      return kNone;
  }
  return count;
}

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

struct Shape {
  int64_t extents[3];
  unsigned axis = 1;  ///< of which one thread takes
  int64_t rows = 1;   ///< so many
};

/// The block once for each mapping, operation by operation, loops written out.
void writeOut(mlir::OpBuilder& b, mlir::Block& block, llvm::MutableArrayRef<mlir::IRMapping> threads) {
  for (mlir::Operation& op : block.without_terminator()) {
    auto loop = mlir::dyn_cast<scf::ForOp>(op);
    if (!loop) {
      for (mlir::IRMapping& mapping : threads)
        b.clone(op, mapping);
      continue;
    }
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
    for (int64_t trip = 0, count = *trips(loop); trip < count; ++trip) {
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

/// The same in all threads.
bool isFixed(Value value, mlir::Region& region) {
  mlir::Operation* op = value.getDefiningOp();
  if (!region.isAncestor(value.getParentRegion()))
    return true;
  return op && mlir::isPure(op) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isFixed(operand, region); });
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

/// In front of `op`, the same with threads of several rows.
ir::ThreadsOp written(ir::ThreadsOp op, const Shape& shape, bool hasLimits) {
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

/// Different elements that a thread loads away from limits, by view and indices.
size_t countLoads(ir::ThreadsOp region, const Shape& shape) {
  ir::ThreadsOp joined = written(region, shape, /*hasLimits=*/false);
  std::set<std::vector<const void*>> different;
  joined.walk([&](ir::LoadOp load) {
    std::vector<const void*> place{load.getView().getAsOpaquePointer()};
    for (Value index : load.getIndices())
      place.push_back(index.getAsOpaquePointer());
    different.insert(std::move(place));
  });
  joined.erase();
  return different.size();
}

/// Blocks of known extents with one region of threads, which run straight through.
ir::ThreadsOp candidate(ir::KernelOp phase) {
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

/// Whether some view is loaded from at two places, or in a loop.
bool mayShare(ir::ThreadsOp region) {
  llvm::DenseSet<Value> seen;
  return region
      .walk([&](ir::LoadOp load) {
        bool isAgain = !seen.insert(rootOf(load.getView())).second || load->getParentOfType<scf::ForOp>();
        return isAgain ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

}  // namespace

void joinNeighbours(ir::KernelOp phase) {
  constexpr llvm::StringLiteral kJoined = "vx.joined";
  ir::ThreadsOp region = candidate(phase);
  if (!region || region->hasAttr(kJoined) || !mayShare(region))
    return;
  Shape shape;
  int64_t threads = 1;
  for (auto [axis, extent] : llvm::enumerate(std::array{region.getNx(), region.getNy(), region.getNz()})) {
    auto known = mlir::getConstantIntValue(extent);
    auto block = ir::constantSize(mlir::cast<ir::SizeAttr>((*phase.getBlock())[axis]));
    if (!known || known != block)
      return;
    threads *= shape.extents[axis] = *known;
  }
  const int64_t operations = operationsOf(region.getBody().front(), writtenRoots(phase));
  mlir::OpBuilder b(region);
  auto masked = mlir::cast<ir::ThreadsOp>(b.clone(*region));
  masked.walk([](scf::IfOp branch) {  // inner ones first
    bool hasAccess = branch
                         .walk([](mlir::Operation* op) {
                           return mlir::isa<ir::LoadOp, ir::StoreOp>(op) ? mlir::WalkResult::interrupt()
                                                                         : mlir::WalkResult::advance();
                         })
                         .wasInterrupted();
    if (hasAccess)
      turnIntoMasks(branch);
  });
  std::optional<Shape> chosen;
  std::optional<size_t> alone;
  for (unsigned axis : {1U, 2U}) {
    shape.axis = axis;
    const int64_t beside = shape.extents[0] * (axis == 2 ? shape.extents[1] : 1);
    for (int64_t rows = kMostRows; rows > 1 && !chosen; rows /= 2) {
      if (shape.extents[axis] % rows != 0 || threads / rows < kLeastThreads || beside < kLeastInRow ||
          threads / rows % ir::vxt::kWarpThreads != 0 || operations * rows > kMostWrittenOut)
        continue;
      shape.rows = 1;
      if (!alone)
        alone = countLoads(masked, shape);
      shape.rows = rows;
      const size_t loads = countLoads(masked, shape), apart = *alone * static_cast<size_t>(rows);
      if (loads <= kMostLoads && 5 * loads <= 4 * apart)  // seven points in space: 22 of 28
        chosen = shape;
    }
  }
  ir::ThreadsOp best = chosen ? written(masked, *chosen, /*hasLimits=*/true) : nullptr;
  masked.erase();
  if (!best)
    return;
  best->setAttr(kJoined, b.getUnitAttr());
  llvm::SmallVector<mlir::Attribute> block(phase.getBlock()->getValue());
  phase.walk([&](ir::BlockDimOp dim) {
    mlir::OpBuilder at(dim);
    dim.replaceAllUsesWith(
        at.create<arith::ConstantIndexOp>(dim.getLoc(), chosen->extents[static_cast<unsigned>(dim.getAxis())])
            .getResult());
    dim.erase();
  });
  block[chosen->axis] = ir::sizeConstant(phase.getContext(), chosen->extents[chosen->axis] / chosen->rows);
  phase.setBlockAttr(b.getArrayAttr(block));
  region.erase();
}

}  // namespace vortex::target::gpu
