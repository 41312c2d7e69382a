#include "target/gpu/unrolling.h"

#include "target/gpu/straight.h"

#include <llvm/ADT/SetVector.h>
#include <mlir/Analysis/SliceAnalysis.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/Vector/IR/VectorOps.h>
#include <mlir/IR/IRMapping.h>
#include <mlir/IR/Matchers.h>
#include <mlir/Interfaces/LoopLikeInterface.h>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using mlir::Value;

namespace {

/// Bytes that a thread loads before it computes.
constexpr int64_t kLoadedTogether = 16;
constexpr int64_t kMostIterations = 8;
/// Of one unrolled body.
constexpr int64_t kMostInBody = 200;
constexpr llvm::StringLiteral kUnrolled = "vx.unrolled";

/// Not negative: a constant or a thread's own number.
bool isCount(Value value) {
  auto known = mlir::getConstantIntValue(value);
  auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
  return (known && *known >= 0) || (argument && mlir::isa<ir::ThreadsOp>(argument.getOwner()->getParentOp()));
}

/// Loops inside do not move: their bodies read what stands before them.
bool hasInnerLoop(scf::ForOp loop) {
  return loop.getBody()->walk([](mlir::LoopLikeOpInterface) { return mlir::WalkResult::interrupt(); }).wasInterrupted();
}

/// Iterations of the loop to be run together; 1: it stays. Loops of known length are unrolled as a whole later, where they are short.
int64_t iterationsTogether(scf::ForOp loop) {
  auto step = mlir::getConstantIntValue(loop.getStep());
  Traffic traffic;
  if (loop->hasAttr(kUnrolled) || !loop->getParentOfType<ir::ThreadsOp>() || !step || *step <= 0 ||
      !isCount(loop.getLowerBound()) || mlir::getConstantIntValue(loop.getUpperBound()) ||
      !loop.getInductionVar().getType().isIndex() || hasInnerLoop(loop) ||
      !addTraffic(*loop.getBody(), writtenRoots(loop), traffic) || traffic.loadedBytes == 0)
    return 1;
  int64_t together = 1;
  while (together < kMostIterations && together * traffic.loadedBytes < kLoadedTogether &&
         2 * together * traffic.operations <= kMostInBody)
    together *= 2;
  return together;
}

/// Adds what `op` is computed from in its block.
void addSources(mlir::Operation* op, llvm::SetVector<mlir::Operation*>& early) {
  mlir::BackwardSliceOptions inside;
  inside.filter = [op](mlir::Operation* source) { return source->getBlock() == op->getBlock(); };
  mlir::getBackwardSlice(op, &early, inside);
}

/// In the order in which they stand. Returns the last one; null: there are none.
mlir::Operation* moveToFront(mlir::Block& block, const llvm::SetVector<mlir::Operation*>& early) {
  mlir::Operation* last = nullptr;
  for (mlir::Operation& op : llvm::make_early_inc_range(block))
    if (early.contains(&op)) {
      last ? op.moveAfter(last) : op.moveBefore(&block, block.begin());
      last = &op;
    }
  return last;
}

/// Loads first, with what their addresses and masks take.
void hoistLoads(mlir::Block& block) {
  llvm::SetVector<mlir::Operation*> early;
  for (auto load : block.getOps<ir::LoadOp>()) {
    addSources(load, early);
    early.insert(load);
  }
  moveToFront(block, early);
}

/// What holds in all iterations up to some number, which is known before the loop: comparisons of the counter plus something that stays with
/// something that stays, and that accesses at such places are inside of their views.
class PlainIterations {
public:
  explicit PlainIterations(scf::ForOp loop) : loop_(loop), b_(loop), loc_(loop.getLoc()) {
    for (mlir::Operation& op : loop.getBody()->without_terminator()) {
      if (auto comparison = mlir::dyn_cast<arith::CmpIOp>(op); comparison && !comparison->use_empty())
        addComparison(comparison);
      else if (auto load = mlir::dyn_cast<ir::LoadOp>(op); load && load.getGuarded())
        addAccess(load, load.getView(), load.getIndices());
      else if (auto store = mlir::dyn_cast<ir::StoreOp>(op); store && store.getGuarded())
        addAccess(store, store.getView(), store.getIndices());
    }
  }

  bool isEmpty() const { return comparisons_.empty() && accesses_.empty(); }
  bool isTrue(mlir::Operation& op) const { return comparisons_.contains(&op); }
  bool isInside(mlir::Operation& op) const { return accesses_.contains(&op); }
  /// The counter is below it in such iterations; at most 2^63 - 1 less 2^62.
  Value end(Value end) {
    // No minima: those would be taken for indices that are held inside an extent (interior.h).
    for (Value limit : limits_) {
      Value isLess = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, limit, end);
      end = b_.create<arith::SelectOp>(loc_, isLess, limit, end);
    }
    return holds_ ? Value(b_.create<arith::SelectOp>(loc_, holds_, end, loop_.getLowerBound())) : end;
  }

private:
  /// Sums and differences of such numbers do not wrap.
  static constexpr int64_t kFar = int64_t{1} << 61;

  /// The counter, if it is part of it, plus a value that stays; null: nothing.
  struct Place {
    bool hasCounter = false;
    Value rest;
  };

  bool isInLoop(Value value) { return loop_.getRegion().isAncestor(value.getParentRegion()); }
  static bool isWide(mlir::Type type) { return type.isIndex() || type.isInteger(64); }
  Value constant(int64_t value) { return b_.create<arith::ConstantIndexOp>(loc_, value); }

  Value asIndex(Value value) {
    return value.getType().isIndex() ? value : Value(b_.create<arith::IndexCastOp>(loc_, b_.getIndexType(), value));
  }

  /// Before the loop; null: it changes.
  Value keep(Value value) {
    if (!isInLoop(value))
      return value;
    if (Value known = kept_.lookupOrNull(value))
      return known;
    mlir::Operation* op = value.getDefiningOp();
    if (!op || op->getNumRegions() != 0 || !mlir::isPure(op) ||
        !llvm::all_of(op->getOperands(), [&](Value operand) { return bool(keep(operand)); }))
      return {};
    b_.clone(*op, kept_);
    return kept_.lookup(value);
  }

  std::optional<Place> placeOf(Value value) {
    if (value == loop_.getInductionVar())
      return Place{true, {}};
    if (!isWide(value.getType()))
      return std::nullopt;
    if (Value kept = keep(value))
      return Place{false, asIndex(kept)};
    mlir::Operation* op = value.getDefiningOp();
    if (mlir::isa_and_nonnull<arith::IndexCastOp, arith::IndexCastUIOp>(op) && isWide(op->getOperand(0).getType()))
      return placeOf(op->getOperand(0));
    if (!mlir::isa_and_nonnull<arith::AddIOp>(op))
      return std::nullopt;
    auto x = placeOf(op->getOperand(0)), y = x ? placeOf(op->getOperand(1)) : std::nullopt;
    if (!y || (x->hasCounter && y->hasCounter))
      return std::nullopt;
    Place sum{x->hasCounter || y->hasCounter, x->rest};
    if (y->rest)
      sum.rest = sum.rest ? Value(b_.create<arith::AddIOp>(loc_, sum.rest, y->rest)) : y->rest;
    return sum;
  }

  void require(arith::CmpIPredicate predicate, Value x, Value y) {
    Value holds = b_.create<arith::CmpIOp>(loc_, predicate, x, y);
    holds_ = holds_ ? Value(b_.create<arith::AndIOp>(loc_, holds_, holds)) : holds;
  }

  /// Counter + place.rest < end in all iterations that count; not negative where `isUnsigned`.
  void require(const Place& place, Value end, bool isUnsigned) {
    Value rest = place.rest ? place.rest : constant(0);
    for (Value each : {rest, end}) {
      require(arith::CmpIPredicate::sle, each, constant(kFar));
      require(arith::CmpIPredicate::sge, each, constant(isUnsigned ? 0 : -kFar));
    }
    limits_.push_back(b_.create<arith::SubIOp>(loc_, end, rest));
  }

  void addComparison(arith::CmpIOp op) {
    using enum arith::CmpIPredicate;
    const bool isTurned = op.getPredicate() == sgt || op.getPredicate() == ugt;
    if (!isTurned && op.getPredicate() != slt && op.getPredicate() != ult)
      return;
    const bool isUnsigned = op.getPredicate() == ult || op.getPredicate() == ugt;
    auto place = placeOf(isTurned ? op.getRhs() : op.getLhs());
    Value end = place && place->hasCounter ? keep(isTurned ? op.getLhs() : op.getRhs()) : Value();
    if (!end || !isWide(end.getType()))
      return;
    require(*place, asIndex(end), isUnsigned);
    comparisons_.insert(op);
  }

  void addAccess(mlir::Operation* op, Value view, mlir::OperandRange indices) {
    if (isInLoop(view))
      return;
    llvm::SmallVector<Place> places;
    for (Value index : indices) {
      auto place = placeOf(index);
      if (!place)
        return;
      places.push_back(*place);
    }
    for (auto [dim, place] : llvm::enumerate(places)) {
      Value extent = b_.create<ir::DimOp>(loc_, b_.getIndexType(), view, static_cast<uint64_t>(dim));
      if (place.hasCounter)
        require(place, extent, true);
      else
        require(arith::CmpIPredicate::ult, place.rest, extent);
    }
    accesses_.insert(op);
  }

  scf::ForOp loop_;
  mlir::OpBuilder b_;
  mlir::Location loc_;
  mlir::IRMapping kept_;
  llvm::SmallPtrSet<mlir::Operation*, 8> comparisons_, accesses_;
  llvm::SmallVector<Value> limits_;
  Value holds_;
};

/// Quotients by one divisor, as a vector: its reciprocal is taken once, and they do not wait for each other (nvidia/quotients.cpp).
void joinQuotients(mlir::Block& block) {
  llvm::MapVector<Value, llvm::SmallVector<arith::DivFOp>> byDivisor;
  for (auto quotient : block.getOps<arith::DivFOp>())
    if (quotient.getType().isF32() && quotient.getRhs().getParentBlock() != &block)
      byDivisor[quotient.getRhs()].push_back(quotient);
  for (auto& [divisor, quotients] : byDivisor) {
    if (quotients.size() < 2)
      continue;
    // Dividends come first, where nothing but loads that are early stands before them.
    llvm::SetVector<mlir::Operation*> early;
    for (arith::DivFOp quotient : quotients)
      addSources(quotient, early);
    const bool isPure =
        llvm::all_of(early, [](mlir::Operation* op) { return mlir::isPure(op) || mlir::isa<ir::LoadOp>(op); });
    if (!isPure || llvm::any_of(quotients, [&](arith::DivFOp quotient) { return early.contains(quotient); }))
      continue;
    mlir::Operation* last = moveToFront(block, early);
    mlir::OpBuilder b(block.getParentOp());
    last ? b.setInsertionPointAfter(last) : b.setInsertionPointToStart(&block);
    mlir::Location loc = quotients[0].getLoc();
    llvm::SmallVector<Value> dividends;
    for (arith::DivFOp quotient : quotients)
      dividends.push_back(quotient.getLhs());
    auto type = mlir::VectorType::get({static_cast<int64_t>(dividends.size())}, b.getF32Type());
    Value all = b.create<mlir::vector::FromElementsOp>(loc, type, dividends);
    Value divisors = b.create<mlir::vector::BroadcastOp>(loc, type, divisor);
    Value joined = b.create<arith::DivFOp>(loc, all, divisors, quotients[0].getFastmathAttr());
    for (auto [number, quotient] : llvm::enumerate(quotients)) {
      quotient.replaceAllUsesWith(Value(b.create<mlir::vector::ExtractOp>(loc, joined, static_cast<int64_t>(number))));
      quotient.erase();
    }
  }
}

/// So many iterations at a time, as long as whole ones end before `end`, from where the loop begins; it then begins behind them. `plain`: what
/// holds in them; null: nothing is known.
void unrollBefore(scf::ForOp loop, int64_t together, Value end, const PlainIterations* plain) {
  mlir::OpBuilder b(loop);
  mlir::Location loc = loop.getLoc();
  auto constant = [&](int64_t value) -> Value { return b.create<arith::ConstantIndexOp>(loc, value); };
  const int64_t step = *mlir::getConstantIntValue(loop.getStep());
  end = b.create<arith::MaxSIOp>(loc, end, loop.getLowerBound());
  Value last = b.create<arith::SubIOp>(loc, end, constant((together - 1) * step)), stride = constant(together * step);
  llvm::SmallVector<Value> initial(loop.getInitArgs());
  initial.push_back(loop.getLowerBound());
  auto iterations = [&](mlir::OpBuilder&, mlir::Location, Value first, mlir::ValueRange carried) {
    mlir::IRMapping mapping;
    mapping.map(loop.getRegionIterArgs(), carried.drop_back());
    llvm::SmallVector<Value> values;
    for (int64_t number = 0; number < together; ++number) {
      mapping.map(loop.getInductionVar(),
                  number ? b.create<arith::AddIOp>(loc, first, constant(number * step)) : first);
      for (mlir::Operation& op : loop.getBody()->without_terminator()) {
        if (plain && plain->isTrue(op)) {
          mapping.map(op.getResult(0), b.create<arith::ConstantIntOp>(loc, 1, 1));
          continue;
        }
        mlir::Operation* made = b.clone(op, mapping);
        if (plain && plain->isInside(op))
          made->removeAttr("guarded");
      }
      values.clear();
      for (Value value : loop.getYieldedValues())
        values.push_back(mapping.lookupOrDefault(value));
      mapping.map(loop.getRegionIterArgs(), values);
    }
    values.push_back(b.create<arith::AddIOp>(loc, first, stride));
    b.create<scf::YieldOp>(loc, values);
  };
  auto whole = b.create<scf::ForOp>(loc, loop.getLowerBound(), last, stride, initial, iterations);
  hoistLoads(*whole.getBody());
  joinQuotients(*whole.getBody());
  loop.setLowerBound(whole.getResults().back());
  loop.getInitArgsMutable().assign(whole.getResults().drop_back());
  for (scf::ForOp each : {whole, loop})
    each->setAttr(kUnrolled, b.getUnitAttr());
}

/// Those of which all conditions are known, then those of which they are not, then what is left, one by one.
void unroll(scf::ForOp loop, int64_t together) {
  PlainIterations plain(loop);
  if (!plain.isEmpty())
    unrollBefore(loop, together, plain.end(loop.getUpperBound()), &plain);
  unrollBefore(loop, together, loop.getUpperBound(), nullptr);
}

}  // namespace

void unrollStreams(ir::KernelOp phase) {
  llvm::SmallVector<std::pair<scf::ForOp, int64_t>> loops;
  phase.walk([&](scf::ForOp loop) {
    if (int64_t together = iterationsTogether(loop); together > 1)
      loops.push_back({loop, together});
  });
  for (auto [loop, together] : loops) {
    loop.walk([](scf::IfOp branch) { turnIntoMasks(branch); });  // inner ones first
    unroll(loop, together);
  }
}

}  // namespace vortex::target::gpu
