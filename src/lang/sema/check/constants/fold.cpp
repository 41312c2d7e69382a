// Compile-time evaluation of typed expressions.
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/make.h"

#include "base/text.h"
#include "lang/sema/integers.h"

#include <algorithm>
#include <cmath>

namespace vortex::lang {
namespace {

std::optional<double> floatOp(BinaryOp op, double a, double b) {
  switch (op) {
  case BinaryOp::Add: return a + b;
  case BinaryOp::Sub: return a - b;
  case BinaryOp::Mul: return a * b;
  case BinaryOp::Div: return a / b;
  case BinaryOp::Rem: return std::fmod(a, b);
  case BinaryOp::Pow: return std::pow(a, b);
  default: return std::nullopt;
  }
}

double roundTo(double value, Type type) {
  return type->kind == TypeKind::Scalar ? roundToFloat(type->scalar, value) : value;
}

bool isLiteral(const Expr* expr) { return expr->kind == ExprKind::Int || expr->kind == ExprKind::Float; }

Expr* foldBinary(BodyState& body, Expr* expr, Expr* lhs, Expr* rhs, bool& reported) {
  if (lhs->kind == ExprKind::Int && rhs->kind == ExprKind::Int) {
    const Scalar scalar = lhs->type->kind == TypeKind::Scalar ? lhs->type->scalar : Scalar::I32;
    if ((expr->binaryOp == BinaryOp::Div || expr->binaryOp == BinaryOp::Rem) && rhs->intValue == 0) {
      error(body, "E0311", expr->range, "division by zero in a constant");
      return reported = true, nullptr;
    }
    if (auto holds = compare<__int128>(expr->binaryOp, lhs->intValue, rhs->intValue))
      return makeInt(body, *holds, expr->type, expr->range);
    const IntegerResult result = integerBinary(expr->binaryOp, scalar, lhs->intValue, rhs->intValue);
    const bool isFraction = expr->binaryOp == BinaryOp::Pow && rhs->intValue < 0;
    if (!result.fits || isFraction) {
      error(body, "E0311", expr->range, base::concat("this constant does not fit `", name(scalar), "`"));
      return reported = true, nullptr;
    }
    return makeInt(body, result.value, expr->type, expr->range);
  }
  if (lhs->kind == ExprKind::Float && rhs->kind == ExprKind::Float) {
    if (expr->type->isScalar(Scalar::Bool))
      return makeInt(body, *compare(expr->binaryOp, lhs->floatValue, rhs->floatValue), expr->type, expr->range);
    auto value = floatOp(expr->binaryOp, roundTo(lhs->floatValue, lhs->type), roundTo(rhs->floatValue, rhs->type));
    if (!value)
      return nullptr;
    Expr* out = make(body, ExprKind::Float, expr->type, expr->range);
    out->floatValue = roundTo(*value, expr->type);
    return out;
  }
  return nullptr;
}

Expr* foldCast(BodyState& body, Expr* expr, Expr* operand) {
  if (expr->type->kind != TypeKind::Scalar || !isLiteral(operand))
    return nullptr;
  const Scalar to = expr->type->scalar;
  const double number = roundTo(operand->floatValue, operand->type);
  if (isFloat(to)) {
    Expr* out = make(body, ExprKind::Float, expr->type, expr->range);
    out->floatValue = operand->kind == ExprKind::Int ? toFloat(to, operand->intValue) : roundToFloat(to, number);
    return out;
  }
  const __int128 value =
      operand->kind == ExprKind::Int ? wrapInteger(to, operand->intValue) : saturateToInteger(to, number);
  return makeInt(body, value, expr->type, expr->range);
}

Expr* foldBuiltin(BodyState& body, Expr* expr, const std::vector<Expr*>& args) {
  if (expr->builtin == Builtin::Select && args[0]->kind == ExprKind::Int)
    return args[args[0]->intValue ? 1 : 2];
  const bool allInts = !args.empty() && std::all_of(args.begin(), args.end(),
                                                    [](const Expr* arg) { return arg->kind == ExprKind::Int; });
  if (allInts && expr->type->kind == TypeKind::Scalar && isInteger(expr->type->scalar)) {
    std::vector<__int128> values;
    for (const Expr* arg : args)
      values.push_back(arg->intValue);
    auto value = integerBuiltin(expr->builtin, expr->type->scalar, values);
    return value ? makeInt(body, *value, expr->type, expr->range) : nullptr;
  }
  if (args.size() == 1 && args[0]->kind == ExprKind::Float) {
    const double x = roundTo(args[0]->floatValue, args[0]->type);
    double value = 0;
    switch (expr->builtin) {
#define VORTEX_FLOAT_CASE(id, name, op, function, ...)                                                                 \
  case Builtin::id: value = function(x); break;
      VORTEX_FLOAT_FUNCTIONS(VORTEX_FLOAT_CASE)
#undef VORTEX_FLOAT_CASE
    case Builtin::Abs: value = std::fabs(x); break;
    default: return nullptr;
    }
    Expr* out = make(body, ExprKind::Float, expr->type, expr->range);
    out->floatValue = roundTo(value, expr->type);
    return out;
  }
  return nullptr;
}

}  // namespace

Expr* fold(BodyState& body, Expr* expr, bool& reported) {
  switch (expr->kind) {
  case ExprKind::Int:
  case ExprKind::Float:
  case ExprKind::String:
  case ExprKind::IntList:
  case ExprKind::Unit: return expr;
  default: break;
  }
  if (expr->kind == ExprKind::Block && expr->args.size() == 1)
    return fold(body, expr->args[0], reported);
  std::vector<Expr*> args;
  if (expr->kind == ExprKind::If && expr->args.size() == 3) {
    Expr* condition = fold(body, expr->args[0], reported);
    return condition ? fold(body, expr->args[condition->intValue ? 1 : 2], reported) : nullptr;
  }
  switch (expr->kind) {
  case ExprKind::Unary:
  case ExprKind::Binary:
  case ExprKind::Cast:
  case ExprKind::Builtin:
  case ExprKind::MakeArray:
  case ExprKind::MakeTuple:
  case ExprKind::MakeStruct:
  case ExprKind::RepeatArray:
  case ExprKind::Element:
  case ExprKind::Field: break;
  default: return nullptr;
  }
  for (Expr* arg : expr->args) {
    Expr* folded = fold(body, arg, reported);
    if (!folded)
      return nullptr;
    args.push_back(folded);
  }
  switch (expr->kind) {
  case ExprKind::Unary: {
    if (!isLiteral(args[0]) || expr->type->kind != TypeKind::Scalar)
      return nullptr;
    Expr* out = clone(body, args[0], expr->range);
    if (expr->unaryOp == UnaryOp::Not)
      out->intValue =
          expr->type->isScalar(Scalar::Bool) ? !args[0]->intValue : wrapInteger(expr->type->scalar, ~args[0]->intValue);
    out->floatValue = -out->floatValue;
    if (expr->unaryOp == UnaryOp::Neg)
      out->intValue = -out->intValue;
    return out;
  }
  case ExprKind::Binary: return foldBinary(body, expr, args[0], args[1], reported);
  case ExprKind::Cast: return foldCast(body, expr, args[0]);
  case ExprKind::Builtin: return foldBuiltin(body, expr, args);
  case ExprKind::Field:
    return args[0]->args.size() > static_cast<size_t>(expr->ints[0]) ? args[0]->args[expr->ints[0]] : nullptr;
  case ExprKind::Element: {
    const bool inside = args[0]->kind == ExprKind::MakeArray && args[1]->intValue >= 0 &&
                        static_cast<size_t>(args[1]->intValue) < args[0]->args.size();
    return inside ? args[0]->args[static_cast<size_t>(args[1]->intValue)] : nullptr;
  }
  default: {
    Expr* out = make(body, expr->kind, expr->type, expr->range, std::move(args));
    out->ints = expr->ints;
    return out;
  }
  }
}

}  // namespace vortex::lang
