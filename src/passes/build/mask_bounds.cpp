#include "passes/build/mask_bounds.h"

#include "ir/root_view.h"
#include "ir/tile_sizes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

namespace vortex::passes {

using namespace mlir;

/// Numbers up to here are added up without a thought; extents are smaller.
static constexpr int64_t kLarge = int64_t(1) << 40;
static constexpr int64_t kMostFactor = int64_t(1) << 16;

MaskBounds::MaskBounds(scf::ForOp loop, unsigned dim)
    : loop_(loop), dim_(dim), b_(loop), loc_(loop.getLoc()), extent_(loop.getUpperBound()) {}

Value MaskBounds::constant(int64_t value) { return b_.create<arith::ConstantIndexOp>(loc_, value); }
Value MaskBounds::least(Value a, Value b) { return b_.createOrFold<arith::MinSIOp>(loc_, a, b); }
Value MaskBounds::most(Value a, Value b) { return b_.createOrFold<arith::MaxSIOp>(loc_, a, b); }
Value MaskBounds::plus(Value a, Value b) { return b_.createOrFold<arith::AddIOp>(loc_, a, b); }
Value MaskBounds::scaled(Value value, int64_t factor) {
  return factor == 1 ? value : b_.createOrFold<arith::MulIOp>(loc_, value, constant(factor));
}

//===-- sets of positions -------------------------------------------------------------------------------------===//

Kept MaskBounds::intersect(const Kept& a, const Kept& b) {
  auto both = [&](const Interval& x, const Interval& y) -> Interval {
    return {x.begin && y.begin ? most(x.begin, y.begin)
            : x.begin          ? x.begin
                               : y.begin,
            x.end && y.end ? least(x.end, y.end)
            : x.end        ? x.end
                           : y.end};
  };
  Kept result{both(a.some, b.some), std::nullopt};
  if (a.all && b.all)
    result.all = both(*a.all, *b.all);
  return result;
}

Kept MaskBounds::unite(const Kept& a, const Kept& b) {
  auto hull = [&](const Interval& x, const Interval& y) -> Interval {
    return {x.begin && y.begin ? least(x.begin, y.begin) : Value(), x.end && y.end ? most(x.end, y.end) : Value()};
  };
  Kept result{hull(a.some, b.some), a.all ? a.all : b.all};
  // Two half-lines in one direction, or one of them everything or nothing.
  if (a.all && b.all &&
      ((!a.all->begin && !b.all->begin) || (!a.all->end && !b.all->end) || a.isEverywhere || b.isEverywhere))
    result.all = hull(*a.all, *b.all);
  return result;
}

Kept MaskBounds::kept(Value condition, bool when) {
  auto type = dyn_cast<RankedTensorType>(condition.getType());
  return type ? keptWhere(condition, llvm::to_vector<4>(llvm::seq<int64_t>(0, type.getRank())), when) : Kept();
}

Kept MaskBounds::keptWhere(Value condition, const Dims& dims, bool when) {
  Operation* op = condition.getDefiningOp();
  if (!isa<RankedTensorType>(condition.getType()))
    return everywhere(condition, when);
  if (!op)
    return {};
  if (auto source = repeated(op, dims))
    return keptWhere(source->first, source->second, when);
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compared(compare, dims, when);
  if (isa<arith::AndIOp, arith::OrIOp>(op)) {
    Kept a = keptWhere(op->getOperand(0), dims, when), b = keptWhere(op->getOperand(1), dims, when);
    return isa<arith::AndIOp>(op) == when ? intersect(a, b) : unite(a, b);
  }
  if (auto negation = dyn_cast<arith::XOrIOp>(op); negation && matchPattern(negation.getRhs(), m_One()))
    return keptWhere(negation.getLhs(), dims, !when);
  return {};
}

/// All positions where a scalar is `when`, else none: an interval that ends at 0.
Kept MaskBounds::everywhere(Value condition, bool when) {
  if (!isBefore(condition))
    return {};
  Value first = when ? constant(0) : extent_, last = when ? extent_ : constant(0);
  Interval all{b_.create<arith::SelectOp>(loc_, condition, first, last),
               b_.create<arith::SelectOp>(loc_, condition, last, first)};
  return {all, all, true};
}

/// t < x or t >= x, where x is a number per row.
Kept MaskBounds::compared(arith::CmpIOp compare, const Dims& dims, bool when) {
  using Predicate = arith::CmpIPredicate;
  Sum left, right;
  width_ = 64, isExact_ = {};
  if (!collect(compare.getLhs(), dims, 1, left) || !collect(compare.getRhs(), dims, 1, right))
    return {};
  int64_t factor = left.position - right.position;
  if ((factor != 1 && factor != -1) || left.start - right.start != factor)
    return {};
  bool isBelow = false, isEqual = false;
  switch (compare.getPredicate()) {
  case Predicate::slt:
  case Predicate::ult: isBelow = true; break;
  case Predicate::sle:
  case Predicate::ule: isBelow = isEqual = true; break;
  case Predicate::sgt:
  case Predicate::ugt: break;
  case Predicate::sge:
  case Predicate::uge: isEqual = true; break;
  default: return {};
  }
  if (compare.getPredicate() >= Predicate::ult)
    for (const Sum* side : {&left, &right})
      if (Value from = low(*side))
        require(b_.create<arith::CmpIOp>(loc_, Predicate::sge, from, constant(0)));
  if (width_ < 64) {
    Value size = plus(plus(magnitude(left), magnitude(right)), extent_);
    require(b_.create<arith::CmpIOp>(loc_, Predicate::slt, size, constant(int64_t(1) << (width_ - 1))));
  }
  // left - right = factor · t + rest.
  Sum rest = left;
  for (Term term : right.terms)
    term.factor = -term.factor, rest.terms.push_back(term);
  for (Term& term : rest.terms)
    term.factor *= -factor;
  Value first = constant(0), last = constant(0);
  for (const Term& term : rest.terms) {
    first = plus(first, scaled(term.factor > 0 ? term.low : term.high, term.factor));
    last = plus(last, scaled(term.factor > 0 ? term.high : term.low, term.factor));
  }
  bool keepsLess = (isBelow == (factor > 0));
  if (isEqual == keepsLess) {
    first = plus(first, constant(1));
    last = plus(last, constant(1));
  }
  if (!when)
    keepsLess = !keepsLess;
  auto exactly = [&](Value value, Value otherwise) {
    return isExact_ ? b_.create<arith::SelectOp>(loc_, isExact_, value, otherwise) : value;
  };
  if (keepsLess)
    return {{{}, exactly(last, extent_)}, Interval{{}, exactly(first, constant(0))}};
  return {{exactly(first, constant(0)), {}}, Interval{exactly(last, extent_), {}}};
}

//===-- sums --------------------------------------------------------------------------------------------------===//

/// What broadcasts, transposes and new dimensions of extent 1 repeat.
std::optional<std::pair<Value, MaskBounds::Dims>> MaskBounds::repeated(Operation* op, const Dims& dims) {
  if (!isa<ir::BroadcastOp, ir::TransposeOp, ir::ReshapeOp>(op))
    return std::nullopt;
  Value source = op->getOperand(0);
  auto from = dyn_cast<RankedTensorType>(source.getType());
  Dims result(from ? static_cast<size_t>(from.getRank()) : 0, -1);
  if (auto broadcast = dyn_cast<ir::BroadcastOp>(op)) {
    for (auto [dim, target] : llvm::enumerate(broadcast.getDims()))
      if (from && from.getDimSize(static_cast<unsigned>(dim)) != 1)
        result[dim] = dims[static_cast<size_t>(target)];
  } else if (auto turned = dyn_cast<ir::TransposeOp>(op)) {
    for (auto [dim, target] : llvm::enumerate(turned.getPermutation()))
      result[static_cast<size_t>(target)] = dims[dim];
  } else {
    SmallVector<size_t> old, made;
    auto to = cast<RankedTensorType>(op->getResult(0).getType());
    for (auto [type, list] : {std::pair{from, &old}, {to, &made}})
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        if (type.getDimSize(static_cast<unsigned>(dim)) != 1)
          list->push_back(static_cast<size_t>(dim));
    if (old.size() != made.size())
      return std::nullopt;
    for (auto [a, b] : llvm::zip(old, made))
      result[a] = dims[b];
  }
  return std::pair{source, result};
}

bool MaskBounds::collect(Value value, const Dims& dims, int64_t factor, Sum& sum) {
  if (factor > kMostFactor || factor < -kMostFactor)
    return false;
  if (value == loop_.getInductionVar()) {
    sum.start += factor;
    return true;
  }
  Operation* op = value.getDefiningOp();
  if (op)
    if (auto source = repeated(op, dims))
      return collect(source->first, source->second, factor, sum);
  if (auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(value.getType())))
    width_ = std::min(width_, integer.getWidth());
  return (op && collectOperation(op, dims, factor, sum)) || addPoint(value, factor, sum);
}

/// Operations whose result is the sum of their operands, or the same number, unless it wraps.
bool MaskBounds::collectOperation(Operation* op, const Dims& dims, int64_t factor, Sum& sum) {
  auto operand = [&](unsigned number, int64_t times, Sum& to) {
    return collect(op->getOperand(number), dims, factor * times, to);
  };
  Sum before = sum;
  bool isDone = false;
  if (auto iota = dyn_cast<ir::IotaOp>(op))
    isDone = addIota(iota, dims, factor, sum);
  else if (isa<arith::AddIOp>(op))
    isDone = operand(0, 1, sum) && operand(1, 1, sum);
  else if (isa<arith::SubIOp>(op))
    isDone = operand(0, 1, sum) && operand(1, -1, sum);
  else if (isa<arith::MulIOp>(op)) {
    for (unsigned i : {0u, 1u}) {
      APInt times;
      Value other = op->getOperand(1 - i);
      if (auto broadcast = other.getDefiningOp<ir::BroadcastOp>())
        other = broadcast.getValue();
      if (!isDone && matchPattern(other, m_ConstantInt(&times)) && times.abs().ule(kMostFactor))
        isDone = operand(i, times.getSExtValue(), sum);
    }
  } else if (isa<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(op)) {
    isDone = operand(0, 1, sum);
  } else if (isa<arith::IndexCastUIOp>(op)) {
    Type from = getElementTypeOrSelf(op->getOperand(0).getType());
    isDone = (from.isIndex() || from.isInteger(64)) && operand(0, 1, sum);
  }
  if (!isDone)
    sum = before;
  return isDone;
}

bool MaskBounds::addIota(ir::IotaOp iota, const Dims& dims, int64_t factor, Sum& sum) {
  auto dim = static_cast<size_t>(iota.getDim());
  if (dims[dim] == static_cast<int64_t>(dim_)) {
    sum.position += factor;
    return true;
  }
  OpFoldResult size = ir::tileSizes(iota.getResult())[dim];
  auto known = getConstantIntValue(size);
  auto value = dyn_cast_if_present<Value>(size);
  if (!known && (!value || !isBefore(value)))
    return false;
  Value last = known ? constant(*known - 1) : plus(value, constant(-1));
  sum.terms.push_back({factor, constant(0), last, true});
  return true;
}

/// Made of extents, numbers of blocks and constants.
static bool isSmall(Value value) {
  Operation* op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto known = getConstantIntValue(value))
    return *known >= 0 && *known < kLarge;
  if (isa<ir::DimOp, ir::BlockIdOp>(op))
    return true;
  return value.getType().isIndex() &&
         isa<arith::AddIOp, arith::MulIOp, arith::MinUIOp, arith::MaxUIOp, ir::IntOp>(op) &&
         llvm::all_of(op->getOperands(), isSmall);
}

bool MaskBounds::addPoint(Value value, int64_t factor, Sum& sum) {
  Value own = point(value);
  if (!own || !own.getType().isIntOrIndex() || own.getType().isInteger(1))
    return false;
  bool isNonNegative = isSmall(own);
  bool isWide = own.getType().isIndex() || own.getType().isInteger(64);
  if (!own.getType().isIndex())
    own = b_.createOrFold<arith::IndexCastOp>(loc_, b_.getIndexType(), own);
  if (!isNonNegative && isWide) {
    Value moved = plus(own, constant(kLarge));
    require(b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::ult, moved, constant(2 * kLarge)));
  }
  sum.terms.push_back({factor, own, own, isNonNegative});
  return true;
}

/// The least that a side can be; null: known not to be negative.
Value MaskBounds::low(const Sum& sum) {
  if (sum.position >= 0 &&
      llvm::all_of(sum.terms, [](const Term& term) { return term.isNonNegative && term.factor >= 0; }))
    return {};
  Value total = sum.position < 0 ? scaled(extent_, sum.position) : constant(0);
  for (const Term& term : sum.terms)
    total = plus(total, scaled(term.factor > 0 ? term.low : term.high, term.factor));
  return total;
}

/// No sum of some of the terms is larger, or smaller than its negative.
Value MaskBounds::magnitude(const Sum& sum) {
  Value total = scaled(extent_, std::abs(sum.position));
  for (const Term& term : sum.terms) {
    Value size = term.isNonNegative ? term.high : most(term.high, scaled(term.low, -1));
    total = plus(total, scaled(size, std::abs(term.factor)));
  }
  return total;
}

void MaskBounds::require(Value condition) {
  isExact_ = isExact_ ? b_.createOrFold<arith::AndIOp>(loc_, isExact_, condition) : condition;
}

//===-- values of the block -----------------------------------------------------------------------------------===//

bool MaskBounds::isBefore(Value value) { return !loop_.getRegion().isAncestor(value.getParentRegion()); }

Value MaskBounds::point(Value value) {
  if (!isa<RankedTensorType>(value.getType()) && isBefore(value))
    return value;
  if (Value known = points_.lookup(value))
    return known;
  Value made = value.getDefiningOp() ? emitPoint(value) : Value();
  if (made)
    points_[value] = made;
  return made;
}

Value MaskBounds::emitPoint(Value value) {
  Operation* op = value.getDefiningOp();
  if (auto load = dyn_cast<ir::TileLoadOp>(op))
    return emitLoad(load);
  if (isa<ir::BroadcastOp, ir::TransposeOp, ir::ReshapeOp>(op)) {
    Dims none(static_cast<size_t>(cast<RankedTensorType>(value.getType()).getRank()), -1);
    auto source = repeated(op, none);
    return source ? point(source->first) : Value();
  }
  if (auto known = dyn_cast<arith::ConstantOp>(op)) {
    auto splat = dyn_cast<SplatElementsAttr>(known.getValue());
    if (isa<RankedTensorType>(value.getType()) && !splat)
      return {};
    return b_.create<arith::ConstantOp>(loc_,
                                        cast<TypedAttr>(splat ? splat.getSplatValue<Attribute>() : known.getValue()));
  }
  if (!ir::isElementwise(op) || op->getNumResults() != 1 || op->getNumRegions() != 0)
    return {};
  OperationState state(loc_, op->getName());
  for (Value operand : op->getOperands()) {
    state.operands.push_back(point(operand));
    if (!state.operands.back())
      return {};
  }
  state.types.push_back(getElementTypeOrSelf(value.getType()));
  state.attributes = llvm::to_vector(op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return b_.create(state)->getResult(0);
}

Value MaskBounds::emitLoad(ir::TileLoadOp load) {
  auto isOne = [](OpFoldResult size) {
    if (auto known = getConstantIntValue(size))
      return *known == 1;
    auto value = dyn_cast_if_present<Value>(size);
    auto piece = value ? value.getDefiningOp<arith::MinUIOp>() : nullptr;
    return piece && llvm::any_of(piece->getOperands(), [](Value operand) { return getConstantIntValue(operand) == 1; });
  };
  bool isWritten = llvm::any_of(ir::rootView(load.getView()).getUsers(),
                                [](Operation* user) { return !isa<ir::TileLoadOp, ir::LoadOp, ir::DimOp>(user); });
  if (isWritten || !load.getInbounds() || !llvm::all_of(ir::tileSizes(load.getResult()), isOne) ||
      !isBefore(load.getView()) || !llvm::all_of(load.getOffsets(), [&](Value offset) { return isBefore(offset); }))
    return {};
  Type element = getElementTypeOrSelf(load.getType());
  return b_.create<ir::LoadOp>(loc_, element, load.getView(), load.getOffsets(), Value(), false);
}

}  // namespace vortex::passes
