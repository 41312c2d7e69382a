// Compile-time evaluation of typed expressions.
#include "lang/sema/check/checker.h"

#include "base/text.h"

#include <cmath>

namespace vortex::lang {
namespace {

__int128 lowest(Scalar scalar) {
  return isUnsigned(scalar) ? 0 : -(static_cast<__int128>(1) << (bitWidth(scalar) - 1));
}
__int128 highest(Scalar scalar) {
  return (static_cast<__int128>(1) << (bitWidth(scalar) - (isUnsigned(scalar) ? 0 : 1))) - 1;
}

std::optional<__int128> integerPower(__int128 base, __int128 exponent) {
  __int128 out = 1;
  for (__int128 i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(out, base, &out) || i > 128)
      return base == 0 || base == 1 ? std::optional(base) : std::nullopt;
  return out;
}

// Null when the exact result leaves 128 bits.
std::optional<__int128> integerOp(BinaryOp op, __int128 a, __int128 b, uint32_t width) {
  __int128 out = 0;
  switch (op) {
  case BinaryOp::Add: return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  case BinaryOp::Sub: return __builtin_sub_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  case BinaryOp::Mul: return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  case BinaryOp::Div: return b == 0 ? 0 : a / b;
  case BinaryOp::Rem: return b == 0 ? 0 : a % b;
  case BinaryOp::Pow: return b < 0 ? std::nullopt : integerPower(a, b);
  case BinaryOp::Shl: return static_cast<__int128>(static_cast<unsigned __int128>(a) << (b & (width - 1)));
  case BinaryOp::Shr: return a >> (b & (width - 1));
  case BinaryOp::BitAnd:
  case BinaryOp::And: return a & b;
  case BinaryOp::BitOr:
  case BinaryOp::Or: return a | b;
  case BinaryOp::BitXor: return a ^ b;
  case BinaryOp::Eq: return a == b;
  case BinaryOp::Ne: return a != b;
  case BinaryOp::Lt: return a < b;
  case BinaryOp::Le: return a <= b;
  case BinaryOp::Gt: return a > b;
  case BinaryOp::Ge: return a >= b;
  }
  return std::nullopt;
}

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
bool floatCompare(BinaryOp op, double a, double b) {
  switch (op) {
  case BinaryOp::Eq: return a == b;
  case BinaryOp::Ne: return a != b;
  case BinaryOp::Lt: return a < b;
  case BinaryOp::Le: return a <= b;
  case BinaryOp::Gt: return a > b;
  default: return a >= b;
  }
}

double roundTo(double value, Type type) {
  return type->isScalar(Scalar::F64) ? value : static_cast<double>(static_cast<float>(value));
}

__int128 saturate(double value, Scalar to) {
  if (std::isnan(value))
    return 0;
  if (value <= static_cast<double>(lowest(to)))
    return lowest(to);
  if (value >= static_cast<double>(highest(to)))
    return highest(to);
  return static_cast<__int128>(value);
}
__int128 wrap(__int128 value, Scalar to) {
  const unsigned __int128 mask = (static_cast<unsigned __int128>(1) << bitWidth(to)) - 1;
  unsigned __int128 bits = static_cast<unsigned __int128>(value) & mask;
  if (!isUnsigned(to) && to != Scalar::Bool && (bits >> (bitWidth(to) - 1)) != 0)
    bits |= ~mask;
  return static_cast<__int128>(bits);
}

bool isLiteral(const Expr* expr) { return expr->kind == ExprKind::Int || expr->kind == ExprKind::Float; }

Expr* foldBinary(Checker& checker, Expr* expr, Expr* lhs, Expr* rhs, bool& reported) {
  if (lhs->kind == ExprKind::Int && rhs->kind == ExprKind::Int) {
    const Scalar scalar = lhs->type->kind == TypeKind::Scalar ? lhs->type->scalar : Scalar::I32;
    if ((expr->binaryOp == BinaryOp::Div || expr->binaryOp == BinaryOp::Rem) && rhs->intValue == 0) {
      checker.error("E0311", expr->range, "division by zero in a constant");
      return reported = true, nullptr;
    }
    auto value = integerOp(expr->binaryOp, lhs->intValue, rhs->intValue, bitWidth(scalar));
    const Scalar result = expr->type->kind == TypeKind::Scalar ? expr->type->scalar : Scalar::I32;
    if (value && result == scalar && (expr->binaryOp == BinaryOp::Shl || expr->binaryOp == BinaryOp::Shr))
      value = wrap(*value, scalar);
    if (!value || (isInteger(result) && (*value < lowest(result) || *value > highest(result)))) {
      checker.error("E0311", expr->range, base::concat("this constant does not fit `", name(result), "`"));
      return reported = true, nullptr;
    }
    return checker.makeInt(*value, expr->type, expr->range);
  }
  if (lhs->kind == ExprKind::Float && rhs->kind == ExprKind::Float) {
    if (expr->type->isScalar(Scalar::Bool))
      return checker.makeInt(floatCompare(expr->binaryOp, lhs->floatValue, rhs->floatValue), expr->type, expr->range);
    auto value = floatOp(expr->binaryOp, lhs->floatValue, rhs->floatValue);
    if (!value)
      return nullptr;
    Expr* out = checker.make(ExprKind::Float, expr->type, expr->range);
    out->floatValue = roundTo(*value, expr->type);
    return out;
  }
  return nullptr;
}

Expr* foldCast(Checker& checker, Expr* expr, Expr* operand) {
  if (expr->type->kind != TypeKind::Scalar || !isLiteral(operand))
    return nullptr;
  const Scalar to = expr->type->scalar;
  if (isFloat(to)) {
    Expr* out = checker.make(ExprKind::Float, expr->type, expr->range);
    out->floatValue = roundTo(
        operand->kind == ExprKind::Int ? static_cast<double>(operand->intValue) : operand->floatValue, expr->type);
    return out;
  }
  const __int128 value =
      operand->kind == ExprKind::Int ? wrap(operand->intValue, to) : saturate(operand->floatValue, to);
  return checker.makeInt(value, expr->type, expr->range);
}

Expr* foldBuiltin(Checker& checker, Expr* expr, const std::vector<Expr*>& args) {
  if (args.size() == 2 && args[0]->kind == ExprKind::Int && args[1]->kind == ExprKind::Int) {
    const __int128 a = args[0]->intValue, b = args[1]->intValue;
    switch (expr->builtin) {
    case Builtin::Min: return checker.makeInt(a < b ? a : b, expr->type, expr->range);
    case Builtin::Max: return checker.makeInt(a < b ? b : a, expr->type, expr->range);
    case Builtin::CeilDiv:
      return checker.makeInt(b == 0 ? 0 : a / b + (a % b != 0 && (a < 0) == (b < 0)), expr->type, expr->range);
    default: return nullptr;
    }
  }
  if (args.size() == 1 && args[0]->kind == ExprKind::Float) {
    const double x = args[0]->floatValue;
    double value = 0;
    switch (expr->builtin) {
    case Builtin::Sqrt: value = std::sqrt(x); break;
    case Builtin::Abs: value = std::fabs(x); break;
    case Builtin::Floor: value = std::floor(x); break;
    case Builtin::Ceil: value = std::ceil(x); break;
    case Builtin::Exp: value = std::exp(x); break;
    case Builtin::Log: value = std::log(x); break;
    case Builtin::Log2: value = std::log2(x); break;
    default: return nullptr;
    }
    Expr* out = checker.make(ExprKind::Float, expr->type, expr->range);
    out->floatValue = roundTo(value, expr->type);
    return out;
  }
  return nullptr;
}

}  // namespace

Expr* Checker::fold(Expr* expr, bool& reported) {
  switch (expr->kind) {
  case ExprKind::Int:
  case ExprKind::Float:
  case ExprKind::String:
  case ExprKind::IntList:
  case ExprKind::Unit: return expr;
  default: break;
  }
  if (expr->kind == ExprKind::Block && expr->args.size() == 1)
    return fold(expr->args[0], reported);
  std::vector<Expr*> args;
  if (expr->kind == ExprKind::If && expr->args.size() == 3) {
    Expr* condition = fold(expr->args[0], reported);
    return condition ? fold(expr->args[condition->intValue ? 1 : 2], reported) : nullptr;
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
    Expr* folded = fold(arg, reported);
    if (!folded)
      return nullptr;
    args.push_back(folded);
  }
  switch (expr->kind) {
  case ExprKind::Unary: {
    if (!isLiteral(args[0]) || expr->type->kind != TypeKind::Scalar)
      return nullptr;
    Expr* out = clone(args[0], expr->range);
    if (expr->unaryOp == UnaryOp::Not)
      out->intValue =
          expr->type->isScalar(Scalar::Bool) ? !args[0]->intValue : wrap(~args[0]->intValue, expr->type->scalar);
    out->floatValue = -out->floatValue;
    if (expr->unaryOp == UnaryOp::Neg)
      out->intValue = -out->intValue;
    return out;
  }
  case ExprKind::Binary: return foldBinary(*this, expr, args[0], args[1], reported);
  case ExprKind::Cast: return foldCast(*this, expr, args[0]);
  case ExprKind::Builtin: return foldBuiltin(*this, expr, args);
  case ExprKind::Field:
    return args[0]->args.size() > static_cast<size_t>(expr->ints[0]) ? args[0]->args[expr->ints[0]] : nullptr;
  case ExprKind::Element: {
    const bool inside = args[0]->kind == ExprKind::MakeArray && args[1]->intValue >= 0 &&
                        static_cast<size_t>(args[1]->intValue) < args[0]->args.size();
    return inside ? args[0]->args[static_cast<size_t>(args[1]->intValue)] : nullptr;
  }
  default: {
    Expr* out = make(expr->kind, expr->type, expr->range, std::move(args));
    out->ints = expr->ints;
    return out;
  }
  }
}

}  // namespace vortex::lang
