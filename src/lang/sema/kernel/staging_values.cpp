#include "lang/sema/kernel/staging_values.h"

#include <algorithm>

namespace vortex::lang::staging {

std::optional<int64_t> Values::valueOf(const Expr* expr, int depth) const {
  if (!expr || depth > 16)
    return std::nullopt;
  switch (expr->kind) {
  case ExprKind::Int: return static_cast<int64_t>(expr->intValue);
  case ExprKind::Cast:
    // The simulated iterations stand for all: what wraps in a later one is not followed.
    return indices_.isExact(*expr) ? valueOf(expr->args[0], depth + 1) : std::nullopt;
  case ExprKind::Deref:
  case ExprKind::Ref: return valueOf(expr->args[0], depth + 1);
  case ExprKind::DimValue: return expr->dim.asConstant();
  case ExprKind::Var: {
    if (auto found = known_.find(expr->variable); found != known_.end())
      return found->second;
    return valueOf(roots_.soleValue(expr->variable), depth + 1);
  }
  case ExprKind::Binary: {
    auto a = valueOf(expr->args[0], depth + 1), b = valueOf(expr->args[1], depth + 1);
    if (!a || !b || !indices_.isExact(*expr))
      return std::nullopt;
    switch (expr->binaryOp) {
    case BinaryOp::Add: return *a + *b;
    case BinaryOp::Sub: return *a - *b;
    case BinaryOp::Mul: return *a * *b;
    // A longer period, of a larger divisor or of a quotient, may exceed the simulated iterations.
    case BinaryOp::Rem: return *b > 0 && *b <= buffers && *a >= 0 ? std::optional(*a % *b) : std::nullopt;
    default: return std::nullopt;
    }
  }
  default: return std::nullopt;
  }
}

std::optional<bool> Values::truth(const Expr& condition) const {
  if (condition.kind != ExprKind::Binary || (condition.binaryOp != BinaryOp::Lt && condition.binaryOp != BinaryOp::Gt))
    return std::nullopt;
  const bool isLess = condition.binaryOp == BinaryOp::Lt;
  const Expr &position = *condition.args[isLess ? 0 : 1], &limit = *condition.args[isLess ? 1 : 0];
  for (auto loop = runs.rbegin(); loop != runs.rend(); ++loop) {
    if (loop->expr->kind != ExprKind::For || loop->expr->args[0]->kind != ExprKind::Range)
      continue;
    const Expr& range = *loop->expr->args[0];
    const int64_t step = range.args.size() > 2 && range.args[2] ? valueOf(range.args[2]).value_or(0) : 1;
    std::optional<int64_t> distance = distanceFrom(position, loop->expr->variable);
    if (distance && step > 0 && *distance >= 0 && *distance % step == 0 && isSameLimit(limit, *range.args[1]))
      return loop->iteration + *distance / step < loop->trips;
  }
  return std::nullopt;
}

/// c in `variable + c`.
std::optional<int64_t> Values::distanceFrom(const Expr& expr, const Variable* variable) const {
  const Expr* at = stripIntegerCasts(&expr, roots_);
  if (at->kind == ExprKind::Var)
    return at->variable == variable ? std::optional<int64_t>(0) : std::nullopt;
  if (at->kind != ExprKind::Binary || at->binaryOp != BinaryOp::Add || !indices_.isExact(*at))
    return std::nullopt;
  for (size_t side : {0, 1}) {
    auto inner = distanceFrom(*at->args[side], variable);
    auto other = valueOf(at->args[1 - side]);
    if (inner && other)
      return *inner + *other;
  }
  return std::nullopt;
}

bool Values::isSameLimit(const Expr& a, const Expr& b) const {
  const Expr *x = stripIntegerCasts(&a, roots_), *y = stripIntegerCasts(&b, roots_);
  if (x->kind != y->kind)
    return false;
  if (x->kind == ExprKind::Var)
    return x->variable == y->variable && !roots_.isAssigned(x->variable);
  if (x->kind == ExprKind::DimValue)
    return x->dim == y->dim;
  return x->kind == ExprKind::Int && x->intValue == y->intValue;
}

bool Values::mentions(const Expr& expr, const Variable* variable, int depth) const {
  if (depth > 16)
    return true;
  if (expr.kind == ExprKind::Var) {
    const Expr* value = expr.variable == variable ? nullptr : roots_.soleValue(expr.variable);
    return expr.variable == variable || (value && mentions(*value, variable, depth + 1));
  }
  return std::any_of(expr.args.begin(), expr.args.end(),
                     [&](const Expr* arg) { return arg && mentions(*arg, variable, depth + 1); });
}

bool Values::choosesBuffers(const Expr& loop, const Expr& body) const {
  if (body.kind == ExprKind::Element && stripRef(body.args[0]->type)->kind == TypeKind::Array)
    for (const Variable* variable : {loop.variable, loop.indexVariable})
      if (variable && mentions(*body.args[1], variable))
        return true;
  return std::any_of(body.args.begin(), body.args.end(),
                     [&](const Expr* arg) { return arg && choosesBuffers(loop, *arg); });
}

std::optional<int64_t> Values::tripCount(const Expr& over) const {
  if (over.kind == ExprKind::IntList)
    return static_cast<int64_t>(over.intList.size());
  if (over.kind != ExprKind::Range)
    return std::nullopt;
  auto begin = valueOf(over.args[0]), end = valueOf(over.args[1]);
  int64_t step = over.args.size() > 2 && over.args[2] ? valueOf(over.args[2]).value_or(0) : 1;
  if (!begin || !end || step <= 0)
    return std::nullopt;
  return *end > *begin ? (*end - *begin + step - 1) / step : 0;
}

void Values::setIteration(const Expr& loop, int64_t i) {
  const Expr& over = *loop.args[0];
  known_.erase(loop.variable);
  if (over.kind == ExprKind::IntList && i < static_cast<int64_t>(over.intList.size()))
    known_[loop.variable] = static_cast<int64_t>(over.intList[static_cast<size_t>(i)]);
  if (over.kind == ExprKind::Range) {
    auto begin = valueOf(over.args[0]);
    auto step = over.args.size() > 2 && over.args[2] ? valueOf(over.args[2]) : std::optional<int64_t>(1);
    if (begin && step)
      known_[loop.variable] = *begin + i * *step;
  }
  if (loop.indexVariable)
    known_[loop.indexVariable] = i;
}

}  // namespace vortex::lang::staging
