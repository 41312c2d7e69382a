#include "target/gpu/plain_iterations.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/Utils/StaticValueUtils.h>
#include <mlir/Interfaces/SideEffectInterfaces.h>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using mlir::Value;

namespace {

/// Sums and differences of such numbers do not wrap.
constexpr int64_t kFar = int64_t{1} << 61;

bool isWide(mlir::Type type) { return type.isIndex() || type.isInteger(64); }

}  // namespace

bool isCount(Value value) {
  auto known = mlir::getConstantIntValue(value);
  auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
  return (known && *known >= 0) ||
         (argument && argument.getArgNumber() < 4 && mlir::isa<ir::ThreadsOp>(argument.getOwner()->getParentOp()));
}

PlainIterations::PlainIterations(scf::ForOp loop) : loop_(loop), b_(loop), loc_(loop.getLoc()) {
  for (mlir::Operation& op : loop.getBody()->without_terminator()) {
    if (auto comparison = mlir::dyn_cast<arith::CmpIOp>(op); comparison && !comparison->use_empty())
      addComparison(comparison);
    else if (auto load = mlir::dyn_cast<ir::LoadOp>(op); load && load.getGuarded())
      addAccess(load, load.getView(), load.getIndices());
    else if (auto store = mlir::dyn_cast<ir::StoreOp>(op); store && store.getGuarded())
      addAccess(store, store.getView(), store.getIndices());
  }
}

llvm::ArrayRef<PlainIterations::Limit> PlainIterations::limitsOf(mlir::Operation* op) const {
  const auto found = limits_.find(op);
  return found == limits_.end() ? llvm::ArrayRef<Limit>() : llvm::ArrayRef<Limit>(found->second);
}

Value PlainIterations::end(Value end) {
  // No minima: those would be taken for indices that are held inside an extent (interior.h).
  for (auto& [_, limits] : limits_)
    for (const Limit& limit : limits) {
      Value isLess = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, limit.below, end);
      end = b_.create<arith::SelectOp>(loc_, isLess, limit.below, end);
    }
  return holds_ ? Value(b_.create<arith::SelectOp>(loc_, holds_, end, loop_.getLowerBound())) : end;
}

Value PlainIterations::constant(int64_t value) { return b_.create<arith::ConstantIndexOp>(loc_, value); }

Value PlainIterations::asIndex(Value value) {
  return value.getType().isIndex() ? value : Value(b_.create<arith::IndexCastOp>(loc_, b_.getIndexType(), value));
}

/// Before the loop; null: it changes.
Value PlainIterations::keep(Value value) {
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

std::optional<PlainIterations::Place> PlainIterations::placeOf(Value value) {
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

void PlainIterations::require(arith::CmpIPredicate predicate, Value x, Value y) {
  Value holds = b_.create<arith::CmpIOp>(loc_, predicate, x, y);
  holds_ = holds_ ? Value(b_.create<arith::AndIOp>(loc_, holds_, holds)) : holds;
}

/// Counter + place.rest < end, in iterations below the limit and in no others; neither is negative where `isUnsigned`.
PlainIterations::Limit PlainIterations::require(const Place& place, Value end, bool isUnsigned) {
  Value rest = place.rest ? place.rest : constant(0);
  for (Value each : {rest, end}) {
    require(arith::CmpIPredicate::sle, each, constant(kFar));
    require(arith::CmpIPredicate::sge, each, constant(isUnsigned ? 0 : -kFar));
  }
  return {b_.create<arith::SubIOp>(loc_, end, rest), end};
}

void PlainIterations::addComparison(arith::CmpIOp op) {
  using enum arith::CmpIPredicate;
  const bool isTurned = op.getPredicate() == sgt || op.getPredicate() == ugt;
  if (!isTurned && op.getPredicate() != slt && op.getPredicate() != ult)
    return;
  const bool isUnsigned = op.getPredicate() == ult || op.getPredicate() == ugt;
  auto place = placeOf(isTurned ? op.getRhs() : op.getLhs());
  Value end = place && place->hasCounter ? keep(isTurned ? op.getLhs() : op.getRhs()) : Value();
  if (end && isWide(end.getType()))
    limits_[op].push_back(require(*place, asIndex(end), isUnsigned));
}

void PlainIterations::addAccess(mlir::Operation* op, Value view, mlir::OperandRange indices) {
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
      limits_[op].push_back(require(place, extent, true));
    else
      require(arith::CmpIPredicate::ult, place.rest, extent);
  }
  inside_.insert(op);
}

}  // namespace vortex::target::gpu
