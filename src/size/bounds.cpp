// Interval arithmetic on expressions. Ends are exact where operators are monotone in what varies, and where nothing stands twice in the expression.
#include "size/bounds.h"

namespace vortex::size {

namespace {

class Bounder {
public:
  explicit Bounder(const BoundsOfScalar& scalar) : scalar_(scalar) {}

  std::optional<Bounds> visit(Expr expr) {
    auto [known, isNew] = known_.insert({&expr.node(), std::nullopt});
    if (!isNew)
      return known->second;
    std::optional<Bounds> bounds = compute(expr);
    return known_[&expr.node()] = bounds;
  }

private:
  std::optional<Bounds> compute(Expr expr) {
    if (expr.op() == Op::Scalar) {
      std::optional<Bounds> own = scalar_(expr.node().argument);
      if (!own)
        return Bounds{expr, expr};
      std::optional<Bounds> low = visit(own->low), high = visit(own->high);
      return low && high ? std::optional(Bounds{low->low, high->high}) : std::nullopt;
    }
    std::array<Bounds, 3> operands;
    bool varies = false;
    for (uint32_t i = 0; i < arity(expr.op()); ++i) {
      std::optional<Bounds> operand = visit(expr.operand(i));
      if (!operand)
        return std::nullopt;
      operands[i] = *operand;
      varies |= operand->low != expr.operand(i) || operand->high != expr.operand(i);
    }
    return varies ? ofOperator(expr, operands) : Bounds{expr, expr};
  }

  static std::optional<Bounds> ofOperator(Expr expr, const std::array<Bounds, 3>& operands) {
    const auto& [a, b, c] = operands;
    const Op op = expr.op();
    switch (op) {
    case Op::Add:
    case Op::Min:
    case Op::Max: return Bounds{make(op, a.low, b.low), make(op, a.high, b.high)};
    case Op::Sub: return Bounds{make(op, a.low, b.high), make(op, a.high, b.low)};
    case Op::Mul: return ofProduct(a, b);
    case Op::FloorDiv:
    case Op::CeilDiv: return ofQuotient(op, a, b);
    case Op::Mod:
      if (!b.low.isNotNegative())
        return std::nullopt;
      return Bounds{constant(expr, 0), make(Op::Max, make(Op::Sub, b.high, 1), 0)};
    case Op::Select: return Bounds{make(Op::Min, b.low, c.low), make(Op::Max, b.high, c.high)};
    case Op::Equal:
    case Op::Less:
    case Op::And:
    case Op::Or:
    case Op::Not:
    case Op::IsPowerOfTwo: return Bounds{constant(expr, 0), constant(expr, 1)};
    default: return std::nullopt;
    }
  }

  static Expr constant(Expr like, int64_t value) { return like.arena().constant(value); }

  static Bounds ofProduct(const Bounds& a, const Bounds& b) {
    for (const auto& [varies, same] : {std::pair(a, b), std::pair(b, a)})
      if (same.low == same.high && same.low.isNotNegative())
        return {make(Op::Mul, varies.low, same.low), make(Op::Mul, varies.high, same.low)};
    if (a.low.isNotNegative() && b.low.isNotNegative())
      return {make(Op::Mul, a.low, b.low), make(Op::Mul, a.high, b.high)};
    Bounds all;
    for (Expr x : {a.low, a.high})
      for (Expr y : {b.low, b.high}) {
        Expr corner = make(Op::Mul, x, y);
        all.low = all.low ? make(Op::Min, all.low, corner) : corner;
        all.high = all.high ? make(Op::Max, all.high, corner) : corner;
      }
    return all;
  }

  /// By zero it is 0, so that is inside always.
  static std::optional<Bounds> ofQuotient(Op op, const Bounds& a, const Bounds& b) {
    if (!b.low.isNotNegative())
      return std::nullopt;
    Expr zero = constant(a.low, 0), least = make(Op::Max, b.low, 1), most = make(Op::Max, b.high, 1);
    Expr high = make(Op::Max, make(op, a.high, least), zero);
    if (a.low.isNotNegative() && b.low.range().low >= 1)
      return Bounds{make(op, a.low, most), high};
    return Bounds{make(Op::Min, make(op, a.low, least), zero), high};
  }

  const BoundsOfScalar& scalar_;
  std::unordered_map<const Node*, std::optional<Bounds>> known_;
};

}  // namespace

std::optional<Bounds> boundsOf(Expr expr, const BoundsOfScalar& scalar) { return Bounder(scalar).visit(expr); }

}  // namespace vortex::size
