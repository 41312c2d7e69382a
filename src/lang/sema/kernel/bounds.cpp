#include "lang/sema/kernel/bounds.h"

#include <algorithm>
#include <array>
#include <optional>

namespace vortex::lang {
namespace {

/// Exclusive upper bounds of a value; each holds by itself. Empty: unknown.
using Bounds = std::vector<DimExpr>;

constexpr int64_t kWarpSize = 32;
constexpr size_t kMaxBounds = 8;

DimExpr plus(const DimExpr& a, int64_t b) { return DimExpr::add(a, DimExpr::constant(b)); }

/// True when a <= b for all non-negative values of the variables: every coefficient of b - a is non-negative.
bool provablyAtMost(const DimExpr& a, const DimExpr& b) {
  DimExpr difference = DimExpr::sub(b, a);
  for (const auto& [monomial, coefficient] : difference.terms())
    if (coefficient < 0)
      return false;
  return true;
}

size_t axisOf(const Expr& position) { return position.ints.empty() ? 0 : static_cast<size_t>(position.ints[0]); }

bool sameValue(const Expr* a, const Expr* b, const Roots& roots) {
  a = stripIntegerCasts(a, roots);
  b = stripIntegerCasts(b, roots);
  if (!a || !b || a->kind != b->kind || a->args.size() != b->args.size())
    return false;
  switch (a->kind) {
  case ExprKind::Var: return a->variable == b->variable && !roots.isAssigned(a->variable);
  case ExprKind::Int: return a->intValue == b->intValue;
  case ExprKind::DimValue: return a->dim == b->dim;
  case ExprKind::Builtin:
    if (a->builtin != b->builtin || axisOf(*a) != axisOf(*b) || !a->args.empty())
      return false;
    return a->builtin >= Builtin::ThreadId && a->builtin <= Builtin::WarpSize;
  case ExprKind::Binary:
    if (a->binaryOp != b->binaryOp)
      return false;
    break;
  case ExprKind::Cast:
    if (a->type != b->type)
      return false;
    break;
  default: return false;
  }
  for (size_t i = 0; i < a->args.size(); ++i)
    if (!sameValue(a->args[i], b->args[i], roots))
      return false;
  return true;
}

class Prover {
public:
  Prover(Function& kernel, const Roots& roots) : kernel_(kernel), roots_(roots) {
    const KernelSpec& spec = *kernel.kernel;
    for (size_t axis = 0; axis < 3; ++axis) {
      if (axis < spec.block.size())
        block_[axis] = exact(spec.block[axis]);
      else if (!spec.block.empty())
        block_[axis] = DimExpr::constant(1);
    }
  }

  void run() {
    if (kernel_.body)
      visit(kernel_.body);
  }

private:
  struct Fact {
    const Expr* smaller;  ///< smaller < bound (or <= when inclusive)
    const Expr* bound;
    bool inclusive;
  };

  /// The value as a symbolic extent, if it is one.
  std::optional<DimExpr> exact(const Expr* expr) const {
    expr = stripIntegerCasts(expr, roots_);
    if (!expr)
      return std::nullopt;
    if (expr->kind == ExprKind::Int && expr->intValue >= 0 && expr->intValue < (__int128(1) << 40))
      return DimExpr::constant(static_cast<int64_t>(expr->intValue));
    if (expr->kind == ExprKind::DimValue)
      return expr->dim;
    if (expr->kind == ExprKind::Builtin && expr->builtin == Builtin::CeilDiv) {
      auto lhs = exact(expr->args[0]), rhs = exact(expr->args[1]);
      if (lhs && rhs && rhs->asConstant().value_or(0) > 0)
        return DimExpr::apply(DimAtom::Kind::CeilDiv, *lhs, *rhs);
      return std::nullopt;
    }
    if (expr->kind == ExprKind::Builtin && expr->builtin == Builtin::BlockDim)
      return block_[axisOf(*expr)];
    if (expr->kind == ExprKind::Binary) {
      auto lhs = exact(expr->args[0]), rhs = exact(expr->args[1]);
      if (!lhs || !rhs)
        return std::nullopt;
      switch (expr->binaryOp) {
      case BinaryOp::Add: return DimExpr::add(*lhs, *rhs);
      case BinaryOp::Mul: return DimExpr::mul(*lhs, *rhs);
      // A usize difference wraps below zero, so only constants are subtracted.
      case BinaryOp::Sub:
        if (lhs->asConstant() && rhs->asConstant() && *lhs->asConstant() >= *rhs->asConstant())
          return DimExpr::sub(*lhs, *rhs);
        return std::nullopt;
      case BinaryOp::Div:
        if (rhs->asConstant().value_or(0) > 0)
          return DimExpr::apply(DimAtom::Kind::FloorDiv, *lhs, *rhs);
        return std::nullopt;
      default: return std::nullopt;
      }
    }
    return std::nullopt;
  }

  Bounds upper(const Expr* expr, int depth = 0) const {
    Bounds result;
    if (!expr || depth > 24)
      return result;
    for (const Fact& fact : facts_)
      if (sameValue(fact.smaller, expr, roots_)) {
        Bounds of = upper(fact.bound, depth + 1);
        for (const DimExpr& bound : of)
          result.push_back(fact.inclusive ? bound : plus(bound, -1));
      }
    expr = stripIntegerCasts(expr, roots_);
    if (auto value = exact(expr))
      result.push_back(plus(*value, 1));
    if (auto highest = highestOfType(expr->type))
      result.push_back(plus(DimExpr::constant(*highest), 1));
    if (!mayBeNegative(*expr))
      append(result, upperOfKind(*expr, depth));
    if (result.size() > kMaxBounds)
      result.resize(kMaxBounds);
    return result;
  }

  /// `t[data[i]]` with u8 data stays below 256 whatever the data is.
  static std::optional<int64_t> highestOfType(Type type) {
    if (!type || type->kind != TypeKind::Scalar || (!isUnsigned(type->scalar) && type->scalar != Scalar::Bool) ||
        bitWidth(type->scalar) > 32)
      return std::nullopt;
    return (int64_t(1) << bitWidth(type->scalar)) - 1;
  }

  /// A negative index is a huge one, so bounds of signed values count only where they start at zero.
  bool mayBeNegative(const Expr& expr) const {
    Type type = expr.type;
    if (!type || type->kind != TypeKind::Scalar || isUnsigned(type->scalar))
      return false;
    if (expr.kind != ExprKind::Var)
      return true;
    for (const Expr* loop : loops_)
      if (loop->variable == expr.variable) {
        const Expr* range = loop->args[0];
        if (range->kind == ExprKind::IntList)
          return false;  // upperOfVariable refuses negative entries
        const Expr* begin = range->kind == ExprKind::Range ? stripIntegerCasts(range->args[0], roots_) : nullptr;
        return !begin || begin->kind != ExprKind::Int || begin->intValue < 0;
      }
    return true;
  }

  static void append(Bounds& to, Bounds from) { to.insert(to.end(), from.begin(), from.end()); }

  Bounds upperOfKind(const Expr& expr, int depth) const {
    switch (expr.kind) {
    case ExprKind::Var: return upperOfVariable(expr.variable, depth);
    case ExprKind::Builtin: return upperOfBuiltin(expr, depth);
    case ExprKind::Binary: return upperOfBinary(expr, depth);
    case ExprKind::If: {
      if (expr.args.size() < 3)
        return {};
      Bounds result;
      Bounds lhs = upper(expr.args[1], depth + 1), rhs = upper(expr.args[2], depth + 1);
      for (const DimExpr& a : lhs)
        for (const DimExpr& b : rhs) {
          if (provablyAtMost(a, b))
            result.push_back(b);
          else if (provablyAtMost(b, a))
            result.push_back(a);
        }
      return result;
    }
    default: return {};
    }
  }

  Bounds upperOfVariable(const Variable* variable, int depth) const {
    for (auto it = loops_.rbegin(); it != loops_.rend(); ++it) {
      const Expr& loop = **it;
      if (loop.variable != variable || roots_.isAssigned(variable))
        continue;
      const Expr* range = loop.args[0];
      if (range->kind == ExprKind::IntList) {
        __int128 highest = 0;
        for (__int128 value : range->intList) {
          if (value < 0)
            return {};
          highest = std::max(highest, value);
        }
        return {DimExpr::constant(static_cast<int64_t>(highest) + 1)};
      }
      if (range->kind != ExprKind::Range)
        return {};
      if (range->args.size() > 2 && range->args[2]) {
        const Expr* step = stripIntegerCasts(range->args[2], roots_);
        if (step->kind != ExprKind::Int || step->intValue <= 0)
          return {};
      }
      Bounds result;
      for (const DimExpr& end : upper(range->args[1], depth + 1))
        result.push_back(plus(lastOf(*range, end), -1));
      return result;
    }
    return {};
  }

  /// `end`, an exclusive bound of a range's end, or less where all of the range is constant and its last value falls short of it.
  DimExpr lastOf(const Expr& range, const DimExpr& end) const {
    if (range.args.size() < 3 || !range.args[2])
      return end;
    auto begin = exact(range.args[0]), step = exact(range.args[2]);
    auto from = begin ? begin->asConstant() : std::nullopt, by = step ? step->asConstant() : std::nullopt;
    auto limit = end.asConstant();
    if (!from || !by || !limit || *by <= 0 || *limit - 1 <= *from)
      return end;
    const int64_t last = *from + (*limit - 2 - *from) / *by * *by;  // limit - 1 is the end
    return DimExpr::constant(last + 2);
  }

  Bounds upperOfBuiltin(const Expr& expr, int depth) const {
    size_t axis = axisOf(expr);
    switch (expr.builtin) {
    case Builtin::BlockId: {
      // The grid of `@tile` cannot be replaced at the launch.
      const KernelSpec& spec = *kernel_.kernel;
      if (!spec.tile || axis >= spec.grid.size())
        return {};
      auto blocks = exact(spec.grid[axis]);
      return blocks ? Bounds{*blocks} : Bounds{};
    }
    case Builtin::ThreadId: return block_[axis] ? Bounds{*block_[axis]} : Bounds{};
    case Builtin::ThreadLocalId:
      if (block_[0] && block_[1] && block_[2])
        return {DimExpr::mul(*block_[0], DimExpr::mul(*block_[1], *block_[2]))};
      return {};
    case Builtin::LaneId: return {DimExpr::constant(kWarpSize)};
    case Builtin::WarpId:
      if (block_[0] && block_[1] && block_[2])
        return {DimExpr::apply(DimAtom::Kind::CeilDiv, DimExpr::mul(*block_[0], DimExpr::mul(*block_[1], *block_[2])),
                               DimExpr::constant(kWarpSize))};
      return {};
    case Builtin::Min: {
      Bounds result = upper(expr.args[0], depth + 1);
      append(result, upper(expr.args[1], depth + 1));
      return result;
    }
    case Builtin::Max:
    case Builtin::Clamp: return expr.builtin == Builtin::Clamp ? upper(expr.args[2], depth + 1) : Bounds{};
    default: return {};
    }
  }

  Bounds upperOfBinary(const Expr& expr, int depth) const {
    Type type = expr.type;
    if (!type || type->kind != TypeKind::Scalar || !isInteger(type->scalar))
      return {};
    Bounds lhs = upper(expr.args[0], depth + 1);
    Bounds result;
    auto constant = exact(expr.args[1]);
    auto value = constant ? constant->asConstant() : std::nullopt;
    switch (expr.binaryOp) {
    case BinaryOp::Add:
      for (const DimExpr& a : lhs)
        for (const DimExpr& b : upper(expr.args[1], depth + 1))
          result.push_back(plus(DimExpr::add(a, b), -1));
      break;
    case BinaryOp::Mul:
      for (const DimExpr& a : lhs)
        for (const DimExpr& b : upper(expr.args[1], depth + 1))
          result.push_back(plus(DimExpr::mul(plus(a, -1), plus(b, -1)), 1));
      break;
    case BinaryOp::Rem:
      if (isUnsigned(type->scalar) && constant) {
        // x % 0 is 0, which is below any non-zero extent; a zero extent has no element to read anyway.
        if (value.value_or(1) > 0)
          result.push_back(*constant);
      }
      append(result, lhs);
      break;
    case BinaryOp::Div:
      if (value.value_or(0) > 0)
        for (const DimExpr& a : lhs)
          result.push_back(DimExpr::apply(DimAtom::Kind::CeilDiv, a, *constant));
      break;
    case BinaryOp::Shr:
      if (isUnsigned(type->scalar))
        result = lhs;
      break;
    case BinaryOp::BitAnd:
      if (value && isUnsigned(type->scalar))
        result.push_back(DimExpr::constant(*value + 1));
      break;
    default: break;
    }
    return result;
  }

  void visit(Expr* expr) {
    if (!expr)
      return;
    if (expr->kind == ExprKind::If)
      return visitIf(expr);
    if (expr->kind == ExprKind::For) {
      visit(expr->args[0]);
      loops_.push_back(expr);
      visit(expr->args[1]);
      loops_.pop_back();
      return;
    }
    if (expr->kind == ExprKind::While) {
      visit(expr->args[0]);
      size_t before = facts_.size();
      learn(expr->args[0]);
      visit(expr->args[1]);
      facts_.resize(before);
      return;
    }
    if (expr->kind == ExprKind::Binary && expr->binaryOp == BinaryOp::And) {
      visit(expr->args[0]);
      size_t before = facts_.size();
      learn(expr->args[0]);
      visit(expr->args[1]);
      facts_.resize(before);
      return;
    }
    for (Expr* arg : expr->args)
      visit(arg);
    for (SliceDim& slice : expr->slices) {
      visit(slice.begin);
      visit(slice.end);
    }
    if (expr->guard != Guard::Guarded)
      return;
    if ((expr->kind == ExprKind::Element && isInside(*expr)) ||
        (expr->kind == ExprKind::Slice && isWindowInside(*expr)))
      expr->guard = Guard::Proven;
  }

  void visitIf(Expr* expr) {
    visit(expr->args[0]);
    size_t before = facts_.size();
    learn(expr->args[0]);
    visit(expr->args[1]);
    facts_.resize(before);
    if (expr->args.size() > 2)
      visit(expr->args[2]);
  }

  /// Facts of a condition that is true. Only values that nothing assigns are compared (sameValue), so they hold in the whole branch.
  void learn(const Expr* condition) {
    if (!condition || condition->kind != ExprKind::Binary)
      return;
    const Expr *a = condition->args[0], *b = condition->args[1];
    Type type = a->type;
    bool unsignedCompare = type && type->kind == TypeKind::Scalar && isUnsigned(type->scalar);
    switch (condition->binaryOp) {
    case BinaryOp::And:
      learn(a);
      learn(b);
      break;
    case BinaryOp::Lt:
      if (unsignedCompare)
        facts_.push_back({a, b, false});
      break;
    case BinaryOp::Le:
      if (unsignedCompare)
        facts_.push_back({a, b, true});
      break;
    case BinaryOp::Gt:
      if (unsignedCompare)
        facts_.push_back({b, a, false});
      break;
    case BinaryOp::Ge:
      if (unsignedCompare)
        facts_.push_back({b, a, true});
      break;
    case BinaryOp::Eq:
      if (unsignedCompare)
        facts_.push_back({a, b, true});
      break;
    default: break;
    }
  }

  bool isWindowInside(const Expr& slice) const {
    Type base = stripRef(slice.args[0]->type), type = stripRef(slice.type);
    if (!base->isTensor() || base->shape.size() != slice.slices.size())
      return false;
    size_t kept = 0;
    for (size_t dim = 0; dim < base->shape.size(); ++dim) {
      const SliceDim& part = slice.slices[dim];
      const bool isIndex = part.kind == SliceDim::Kind::Index;
      const DimExpr length = isIndex ? DimExpr::constant(1) : type->shape[kept++];
      if (part.kind == SliceDim::Kind::Full)
        continue;
      if (length.hasOpaque())
        return false;
      Bounds bounds = part.begin ? upper(part.begin) : Bounds{DimExpr::constant(1)};
      if (std::none_of(bounds.begin(), bounds.end(), [&](const DimExpr& bound) {
            return provablyAtMost(plus(DimExpr::add(bound, length), -1), base->shape[dim]);
          }))
        return false;
    }
    return true;
  }

  bool isInside(const Expr& element) const {
    Type base = stripRef(element.args[0]->type);
    if (!base || !base->isTensor() || base->shape.size() + 1 != element.args.size())
      return false;
    for (size_t dim = 0; dim < base->shape.size(); ++dim) {
      Bounds bounds = upper(element.args[dim + 1]);
      if (std::none_of(bounds.begin(), bounds.end(),
                       [&](const DimExpr& bound) { return provablyAtMost(bound, base->shape[dim]); }))
        return false;
    }
    return true;
  }

  Function& kernel_;
  const Roots& roots_;
  std::array<std::optional<DimExpr>, 3> block_;
  std::vector<Fact> facts_;
  std::vector<const Expr*> loops_;
};

}  // namespace

void proveBounds(Function& kernel, const Roots& roots) { Prover(kernel, roots).run(); }

}  // namespace vortex::lang
