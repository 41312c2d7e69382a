#include "passes/spread_loops.h"

#include "ir/size_attr.h"
#include "passes/plan/axes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

namespace {

/// By number of loops: threads of a block along x, y, z. The innermost loop runs along x.
constexpr int64_t kBlocks[3][3] = {{256, 1, 1}, {32, 8, 1}, {32, 4, 2}};
/// Where only the device knows the number of iterations: enough to occupy it.
constexpr int64_t kBlocksOfUnknown = 1024;

/// Prints are in the order of iterations, allocations belong to a block.
bool isThreadCode(scf::ForOp loop) {
  const WalkResult walked = loop.getBody()->walk([&](Operation* op) {
    const bool readsElement =
        isa<ir::ElementOp>(op) && !loop->isAncestor(op->getOperand(0).getParentRegion()->getParentOp());
    const bool hasTiles =
        llvm::any_of(op->getResults(), isTile) || (!readsElement && llvm::any_of(op->getOperands(), isTile)) ||
        llvm::any_of(op->getRegions(),
                     [](Region& region) { return !region.empty() && llvm::any_of(region.getArguments(), isTile); });
    const bool isControl = isa<scf::ForOp, scf::WhileOp, scf::IfOp, scf::YieldOp, scf::ConditionOp>(op);
    const bool isAccess = isa<ir::LoadOp, ir::StoreOp, ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp,
                              ir::AtomicStoreOp, ir::AssertOp>(op);
    const bool isPlain = op->getNumRegions() == 0 && isMemoryEffectFree(op);
    return !hasTiles && (isControl || isAccess || isPlain) ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walked.wasInterrupted();
}

bool isSpreadable(Operation* op) {
  auto loop = dyn_cast<scf::ForOp>(op);
  return loop && loop->hasAttr(ir::kIndependentAttr) && loop.getNumResults() == 0 &&
         loop.getInductionVar().getType().isIndex() && isThreadCode(loop);
}

/// The marked loop that is all of the loop's body but for what can be computed in each of its iterations; null: there is none.
scf::ForOp onlyLoopIn(scf::ForOp loop) {
  scf::ForOp inner;
  for (Operation& op : loop.getBody()->without_terminator()) {
    if (op.getNumRegions() == 0 && isPure(&op))
      continue;
    if (inner || !isSpreadable(&op))
      return nullptr;
    inner = cast<scf::ForOp>(op);
  }
  return inner;
}

/// No variable of the loops decides it.
bool isFixedIn(Value value, scf::ForOp outermost) {
  if (!outermost->isAncestor(value.getParentRegion()->getParentOp()))
    return true;
  Operation* op = value.getDefiningOp();
  return op && llvm::all_of(op->getOperands(), [&](Value operand) { return isFixedIn(operand, outermost); });
}

/// Null: only the device knows. More iterations than 2^63 - 1 count as so many, for which there is no grid.
ir::SizeAttr countOf(scf::ForOp loop, llvm::function_ref<ir::SizeAttr(Value)> expressionOf) {
  ir::SizeAttr lower = expressionOf(loop.getLowerBound()), upper = expressionOf(loop.getUpperBound()),
               step = expressionOf(loop.getStep());
  if (!lower || !upper || !step)
    return nullptr;
  MLIRContext* context = loop.getContext();
  ir::SizeAttr length = ir::sizeBinary(SizeOp::Sub, upper, lower);
  ir::SizeAttr runs = ir::sizeBinary(SizeOp::Less, lower, upper);
  size::Expr count = ir::sizeBinary(SizeOp::CeilDiv, length, step).getExpr();
  const size::Expr none = ir::sizeConstant(context, 0).getExpr();
  if (const size::Range range = length.getExpr().range(); range.low == INT64_MIN && range.high == INT64_MAX)
    count = size::make(SizeOp::Select, size::make(SizeOp::Less, none, length.getExpr()), count,
                       ir::sizeConstant(context, INT64_MAX).getExpr());
  return ir::SizeAttr::get(context, size::make(SizeOp::Select, runs.getExpr(), count, none));
}

class Emission {
public:
  Emission(OpBuilder& builder, const SpreadLoops& spread, IRMapping& values)
      : b_(builder), spread_(spread), values_(values), loc_(spread_.loops.front().getLoc()) {}

  ir::ThreadsOp run() {
    SmallVector<Value> extents;
    for (int64_t threads : kBlocks[spread_.loops.size() - 1])
      extents.push_back(constant(threads));
    SmallVector<Value> counts, bases;
    for (auto [i, loop] : llvm::enumerate(spread_.loops)) {
      counts.push_back(count(loop));
      Value block = b_.create<ir::BlockIdOp>(loc_, b_.getIndexType(), axisOf(i));
      bases.push_back(b_.create<arith::MulIOp>(loc_, block, extents[unsigned(axisOf(i))]));
    }
    const bool isKnown = llvm::all_of(spread_.counts, [](ir::SizeAttr size) { return bool(size); });
    Value stride = isKnown ? Value() : constant(kBlocksOfUnknown * kBlocks[0][0]);
    auto threads = b_.create<ir::ThreadsOp>(loc_, TypeRange{}, extents[0], extents[1], extents[2], ValueRange{});
    Block& body = threads.getBody().emplaceBlock();
    for (int i = 0; i < 4; ++i)
      body.addArgument(b_.getIndexType(), loc_);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToEnd(&body);
    SmallVector<Value> ids;
    for (auto [i, base] : llvm::enumerate(bases))
      ids.push_back(b_.create<arith::AddIOp>(loc_, base, body.getArgument(unsigned(axisOf(i)))));
    if (isKnown)
      emitOne(ids, counts);
    else
      emitTurns(ids[0], counts[0], stride);
    b_.create<ir::YieldOp>(loc_);
    return threads;
  }

private:
  ir::Axis axisOf(size_t loop) const { return static_cast<ir::Axis>(spread_.loops.size() - 1 - loop); }
  Value constant(int64_t value) { return b_.create<arith::ConstantIndexOp>(loc_, value); }

  Value count(scf::ForOp loop) {
    Value lower = values_.lookup(loop.getLowerBound()), upper = values_.lookup(loop.getUpperBound());
    Value length = b_.create<arith::SubIOp>(loc_, upper, lower);
    const bool isKnown = llvm::all_of(spread_.counts, [](ir::SizeAttr size) { return bool(size); });
    if (isKnown && getConstantIntValue(loop.getStep()) == 1)
      return length;  // compared as signed: a negative one is none, and launches of 2^63 or more are refused
    Value runs = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, lower, upper);
    if (getConstantIntValue(loop.getStep()) == 1) {
      Value wraps = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, length, constant(0));
      length = b_.create<arith::SelectOp>(loc_, wraps, constant(INT64_MAX), length);
      return b_.create<arith::SelectOp>(loc_, runs, length, constant(0));
    }
    Value all = b_.create<arith::SelectOp>(loc_, runs, length, constant(0));
    return b_.create<ir::IntOp>(loc_, all.getType(), ir::IntKind::CeilDivU, all, values_.lookup(loop.getStep()));
  }

  void emitOne(ArrayRef<Value> ids, ArrayRef<Value> counts) {
    Value inside;
    for (auto [id, count] : llvm::zip(ids, counts)) {
      Value below = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, id, count);
      inside = inside ? Value(b_.create<arith::AndIOp>(loc_, inside, below)) : below;
    }
    auto branch = b_.create<scf::IfOp>(loc_, inside);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(branch.thenBlock());
    emitIteration(ids);
  }

  void emitTurns(Value id, Value count, Value stride) {
    auto turns = b_.create<scf::ForOp>(loc_, id, count, stride);
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(turns.getBody());
    emitIteration(turns.getInductionVar());
  }

  void emitIteration(ValueRange ids) {
    for (auto [i, loop] : llvm::enumerate(spread_.loops)) {
      Value lower = values_.lookup(loop.getLowerBound()), step = values_.lookup(loop.getStep());
      Value passed = getConstantIntValue(loop.getStep()) == 1 ? ids[i] : b_.create<arith::MulIOp>(loc_, ids[i], step);
      values_.map(loop.getInductionVar(), Value(b_.create<arith::AddIOp>(loc_, lower, passed)));
    }
    for (auto [i, loop] : llvm::enumerate(spread_.loops))
      for (Operation& op : loop.getBody()->without_terminator()) {
        if (i + 1 < spread_.loops.size() && &op == spread_.loops[i + 1])
          break;
        b_.clone(op, values_);
      }
  }

  OpBuilder& b_;
  SpreadLoops spread_;
  IRMapping& values_;
  Location loc_;
};

}  // namespace

std::optional<SpreadLoops> findSpreadLoops(Operation* op, llvm::function_ref<ir::SizeAttr(Value)> expressionOf) {
  if (!isSpreadable(op))
    return std::nullopt;
  SpreadLoops spread;
  auto outermost = cast<scf::ForOp>(op);
  for (scf::ForOp loop = outermost; loop && spread.loops.size() < 3; loop = onlyLoopIn(loop)) {
    const bool isFixed = llvm::all_of(ValueRange{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()},
                                      [&](Value bound) { return isFixedIn(bound, outermost); });
    ir::SizeAttr count = isFixed ? countOf(loop, expressionOf) : nullptr;
    if (!count && loop != outermost)
      break;
    spread.loops.push_back(loop);
    spread.counts.push_back(count);
    if (!count)
      break;
  }
  return spread;
}

bool holdsClaimedLoop(Operation* op) {
  return op
      ->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
        if (loop == op || !isSpreadable(loop))
          return WalkResult::advance();
        const bool isClaimed = loop->getAttrOfType<StringAttr>(ir::kIndependentAttr).getValue() == ir::kClaimed;
        return isClaimed ? WalkResult::interrupt() : WalkResult::skip();
      })
      .wasInterrupted();
}

SmallVector<Value> tilesReadIn(Operation* op) {
  llvm::SetVector<Value> tiles;
  op->walk([&](ir::ElementOp element) { tiles.insert(element.getValue()); });
  return tiles.takeVector();
}

std::pair<ArrayAttr, ArrayAttr> gridOf(const SpreadLoops& spread) {
  MLIRContext* context = scf::ForOp(spread.loops.front()).getContext();
  SmallVector<Attribute> grid(3, ir::sizeConstant(context, 1)), block;
  for (int64_t threads : kBlocks[spread.loops.size() - 1])
    block.push_back(ir::sizeConstant(context, threads));
  for (auto [i, count] : llvm::enumerate(spread.counts)) {
    const size_t axis = spread.loops.size() - 1 - i;
    grid[axis] = count ? ir::sizeBinary(SizeOp::CeilDiv, count, cast<ir::SizeAttr>(block[axis]))
                       : ir::sizeConstant(context, kBlocksOfUnknown);
  }
  return {ArrayAttr::get(context, grid), ArrayAttr::get(context, block)};
}

void emitSpreadLoops(OpBuilder& builder, const SpreadLoops& spread, IRMapping& values,
                     llvm::function_ref<Value(Value)> viewOf) {
  ir::ThreadsOp threads = Emission(builder, spread, values).run();
  threads.walk([&](ir::ElementOp element) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(element);
    Value load = builder.create<ir::LoadOp>(element.getLoc(), element.getType(), viewOf(element.getValue()),
                                            element.getIndices(), Value(), true);
    element.replaceAllUsesWith(load);
    element.erase();
  });
}

}  // namespace vortex::passes
