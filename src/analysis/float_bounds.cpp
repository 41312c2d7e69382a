#include "analysis/float_bounds.h"

#include "ir/vx.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <llvm/ADT/TypeSwitch.h>

namespace vortex::analysis {
namespace {

namespace arith = mlir::arith;
namespace mm = mlir::math;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Operations looked at between a value and its sources.
constexpr unsigned kDepth = 8;
/// More than any format here rounds by (bf16: 2^-9); f8 has no arithmetic of its own.
constexpr double kRounding = 0x1p-8;

/// low ≤ every element that is a number ≤ high.
struct Bounds {
  double low = -kInfinity, high = kInfinity;
};

/// Ends that came out as NaN (∞ − ∞, 0 · ∞) say nothing.
Bounds rounded(double low, double high) {
  return {std::isnan(low) ? -kInfinity : low - kRounding * std::fabs(low),
          std::isnan(high) ? kInfinity : high + kRounding * std::fabs(high)};
}

}  // namespace

std::optional<double> floatConstant(mlir::Value value) {
  while (auto broadcast = value.getDefiningOp<ir::BroadcastOp>())
    value = broadcast.getValue();
  auto constant = value.getDefiningOp<arith::ConstantOp>();
  if (!constant)
    return std::nullopt;
  mlir::Attribute attribute = constant.getValue();
  if (auto splat = mlir::dyn_cast<mlir::SplatElementsAttr>(attribute))
    attribute = splat.getSplatValue<mlir::Attribute>();
  auto real = mlir::dyn_cast<mlir::FloatAttr>(attribute);
  if (!real || real.getValue().isNaN())
    return std::nullopt;
  llvm::APFloat wide = real.getValue();
  bool lost = false;
  wide.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lost);
  return wide.convertToDouble();
}

namespace {

unsigned rankOf(mlir::Value value) {
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

/// The tile whose maximum over some dimensions `value` repeats along just these: element i of it is at most element i of `value`.
mlir::Value maximumRepeated(mlir::Value value) {
  auto broadcast = value.getDefiningOp<ir::BroadcastOp>();
  auto reduce = broadcast ? broadcast.getValue().getDefiningOp<ir::ReduceOp>() : nullptr;
  if (!reduce || reduce.getKind() != ir::Combine::MaxF || rankOf(reduce.getValue()) != rankOf(value))
    return {};
  llvm::SmallVector<int64_t> kept;
  for (int64_t dim = 0; dim < int64_t(rankOf(value)); ++dim)
    if (!llvm::is_contained(reduce.getDims(), dim))
      kept.push_back(dim);
  return llvm::ArrayRef(kept) == broadcast.getDims() ? reduce.getValue() : mlir::Value();
}

/// Elements of `big` are at least those of `small`, or one of the two is NaN.
bool isAtLeast(mlir::Value big, mlir::Value small, unsigned depth) {
  if (big == small)
    return true;
  if (depth == 0)
    return false;
  if (mlir::Value source = maximumRepeated(big); source && isAtLeast(source, small, depth - 1))
    return true;
  mlir::Operation* op = big.getDefiningOp();
  if (mlir::isa_and_present<arith::MaximumFOp, arith::MaxNumFOp>(op) &&
      (isAtLeast(op->getOperand(0), small, depth - 1) || isAtLeast(op->getOperand(1), small, depth - 1)))
    return true;
  auto least = small.getDefiningOp<arith::MinimumFOp>();
  return least && (isAtLeast(big, least.getLhs(), depth - 1) || isAtLeast(big, least.getRhs(), depth - 1));
}

Bounds boundsOf(mlir::Value value, unsigned depth);

Bounds product(arith::MulFOp op, unsigned depth) {
  Bounds a = boundsOf(op.getLhs(), depth), b = boundsOf(op.getRhs(), depth);
  const double ends[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  Bounds all = std::any_of(std::begin(ends), std::end(ends), [](double end) { return std::isnan(end); })
                   ? Bounds{}
                   : rounded(*std::min_element(std::begin(ends), std::end(ends)),
                             *std::max_element(std::begin(ends), std::end(ends)));
  if (op.getLhs() == op.getRhs())
    all.low = std::max(all.low, 0.0);
  return all;
}

Bounds difference(arith::SubFOp op, unsigned depth) {
  Bounds a = boundsOf(op.getLhs(), depth), b = boundsOf(op.getRhs(), depth);
  Bounds all = rounded(a.low - b.high, a.high - b.low);
  if (isAtLeast(op.getRhs(), op.getLhs(), depth))
    all.high = std::min(all.high, 0.0);
  if (isAtLeast(op.getLhs(), op.getRhs(), depth))
    all.low = std::max(all.low, 0.0);
  return all;
}

/// Where one operand is NaN the other is the result: only constants are known not to be.
Bounds limited(mlir::Operation* op, bool isMinimum, bool passesNan, unsigned depth) {
  Bounds a = boundsOf(op->getOperand(0), depth), b = boundsOf(op->getOperand(1), depth);
  bool both = passesNan || floatConstant(op->getOperand(0)) || floatConstant(op->getOperand(1));
  Bounds result{std::min(a.low, b.low), std::max(a.high, b.high)};
  if (both && isMinimum)
    result.high = std::min(a.high, b.high);
  if (both && !isMinimum)
    result.low = std::max(a.low, b.low);
  return result;
}

/// The exponent of a softmax's weight: x − max(x), maybe scaled by a positive constant; 0 where x is largest.
ir::BroadcastOp shiftOfSoftmax(mlir::Value exponent) {
  if (auto mul = exponent.getDefiningOp<arith::MulFOp>())
    if (auto factor = floatConstant(mul.getRhs()); factor && *factor > 0 && std::isfinite(*factor))
      exponent = mul.getLhs();
  auto sub = exponent.getDefiningOp<arith::SubFOp>();
  return sub && maximumRepeated(sub.getRhs()) == sub.getLhs() ? sub.getRhs().getDefiningOp<ir::BroadcastOp>() : nullptr;
}

/// Σ exp(x − max(x)) over the dimensions of the maximum: one term is 1, all are at most 1, unless the sum is NaN.
bool isSumOfSoftmax(ir::ReduceOp op) {
  auto exp = op.getValue().getDefiningOp();
  if (!mlir::isa_and_present<mm::ExpOp, mm::Exp2Op>(exp))
    return false;
  ir::BroadcastOp shift = shiftOfSoftmax(exp->getOperand(0));
  return shift && shift.getValue().getDefiningOp<ir::ReduceOp>().getDims() == op.getDims();
}

Bounds quotient(arith::DivFOp op, unsigned depth) {
  Bounds a = boundsOf(op.getLhs(), depth), b = boundsOf(op.getRhs(), depth);
  if (a.low >= 0 && b.low >= 0)
    return rounded(b.high < kInfinity ? a.low / b.high : 0, b.low > 0 ? a.high / b.low : kInfinity);
  return {};
}

Bounds exponential(mlir::Operation* op, unsigned depth) {
  Bounds source = boundsOf(op->getOperand(0), depth);
  auto power = [&](double x) { return mlir::isa<mm::ExpOp>(op) ? std::exp(x) : std::exp2(x); };
  Bounds result = rounded(power(source.low), power(source.high));
  return {std::max(0.0, result.low), result.high};
}

Bounds ofReduce(ir::ReduceOp op, unsigned depth) {
  Bounds source = boundsOf(op.getValue(), depth);
  if (op.getKind() == ir::Combine::MaxF)
    return {-kInfinity, source.high};  // without elements −∞
  if (op.getKind() == ir::Combine::MinF)
    return {source.low, kInfinity};
  if (op.getKind() != ir::Combine::AddF)
    return {};
  if (isSumOfSoftmax(op))
    return {1, 0x1p64};
  // Fewer than 2^63 elements, each sum rounded.
  return {source.low >= 0 ? 0 : -kInfinity, source.high <= 0 ? 0 : std::max(source.high, 0.0) * 0x1p64};
}

Bounds boundsOf(mlir::Value value, unsigned depth) {
  if (auto constant = floatConstant(value))
    return {*constant, *constant};
  mlir::Operation* op = value.getDefiningOp();
  if (!op || depth-- == 0 || !mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(value.getType())))
    return {};
  return llvm::TypeSwitch<mlir::Operation*, Bounds>(op)
      .Case([&](arith::NegFOp negate) {
        Bounds source = boundsOf(negate.getOperand(), depth);
        return Bounds{-source.high, -source.low};
      })
      .Case([&](mm::AbsFOp abs) {
        Bounds source = boundsOf(abs.getOperand(), depth);
        return Bounds{std::max({0.0, source.low, -source.high}), std::max(-source.low, source.high)};
      })
      .Case([&](arith::AddFOp add) {
        Bounds a = boundsOf(add.getLhs(), depth), b = boundsOf(add.getRhs(), depth);
        return rounded(a.low + b.low, a.high + b.high);
      })
      .Case([&](arith::SubFOp sub) { return difference(sub, depth); })
      .Case([&](arith::MulFOp mul) { return product(mul, depth); })
      .Case([&](arith::MinimumFOp) { return limited(op, true, true, depth); })
      .Case([&](arith::MinNumFOp) { return limited(op, true, false, depth); })
      .Case([&](arith::MaximumFOp) { return limited(op, false, true, depth); })
      .Case([&](arith::MaxNumFOp) { return limited(op, false, false, depth); })
      .Case([&](arith::SelectOp select) {
        Bounds a = boundsOf(select.getTrueValue(), depth), b = boundsOf(select.getFalseValue(), depth);
        return Bounds{std::min(a.low, b.low), std::max(a.high, b.high)};
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) {
        Bounds source = boundsOf(op->getOperand(0), depth);
        return rounded(source.low, source.high);
      })
      .Case([&](arith::DivFOp div) { return quotient(div, depth); })
      .Case<mm::ExpOp, mm::Exp2Op>([&](auto) { return exponential(op, depth); })
      .Case<mm::SqrtOp, mm::RsqrtOp, arith::UIToFPOp>([](auto) { return Bounds{0, kInfinity}; })
      .Case<ir::SigmoidOp>([](auto) { return Bounds{0, 1}; })
      .Case<ir::ErfcOp>([](auto) { return Bounds{0, 2.01}; })
      .Case<mm::TanhOp, mm::ErfOp, mm::SinOp, mm::CosOp>([](auto) { return Bounds{-1.01, 1.01}; })
      .Case<ir::BroadcastOp, ir::TransposeOp, ir::ReshapeOp>([&](auto) { return boundsOf(op->getOperand(0), depth); })
      .Case([&](ir::ReduceOp reduce) { return ofReduce(reduce, depth); })
      .Default([](mlir::Operation*) { return Bounds{}; });
}

}  // namespace

bool isLostBelow(mlir::Value value, double threshold) {
  mlir::Type type = mlir::getElementTypeOrSelf(value.getType());
  // Less than half a unit in the last place of anything between the constant and its lower neighbour in f32.
  constexpr double kVanishes = 0x1p-26;
  return type.isF32() && !value.use_empty() && llvm::all_of(value.getUsers(), [&](mlir::Operation* user) {
           auto add = mlir::dyn_cast<arith::AddFOp>(user);
           if (!add || add.getLhs() == add.getRhs())
             return false;
           mlir::Value other = add.getLhs() == value ? add.getRhs() : add.getLhs();
           auto constant = floatConstant(other);
           return constant && std::fabs(*constant) * kVanishes > threshold;
         });
}

double upperBound(mlir::Value value) { return boundsOf(value, kDepth).high; }
double lowerBound(mlir::Value value) { return boundsOf(value, kDepth).low; }

bool isNormal(mlir::Value value) {
  constexpr double kSmall = 0x1p-100, kLarge = 0x1p100;
  mlir::Operation* op = value.getDefiningOp();
  if (mlir::isa_and_present<ir::BroadcastOp, ir::TransposeOp, ir::ReshapeOp, arith::NegFOp, mm::AbsFOp>(op))
    return isNormal(op->getOperand(0));
  if (mlir::getElementTypeOrSelf(value.getType()).isF16())
    return true;
  if (mlir::isa_and_present<arith::ExtFOp>(op))
    return mlir::getElementTypeOrSelf(op->getOperand(0).getType()).isF16();
  if (auto constant = floatConstant(value))
    return *constant == 0 || (std::fabs(*constant) >= kSmall && std::fabs(*constant) <= kLarge);
  Bounds bounds = boundsOf(value, kDepth);
  return (bounds.low >= kSmall && bounds.high <= kLarge) || (bounds.high <= -kSmall && bounds.low >= -kLarge);
}

}  // namespace vortex::analysis
