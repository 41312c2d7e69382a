#include "base/text.h"
#include "host/evaluator_state.h"
#include "lang/sema/integers.h"

#include <algorithm>
#include <cmath>

namespace vortex::host {

using namespace lang;

static Scalar scalarOf(Type type) {
  type = stripRef(type);
  if (type->kind == TypeKind::Enum)
    return Scalar::I32;
  return type->scalar;
}

Value Evaluator::evalUnary(const Expr& expr) {
  Value value = eval(*expr.args[0]);
  if (interrupted())
    return {};
  if (!std::holds_alternative<int64_t>(value.data) && !std::holds_alternative<double>(value.data))
    return fail("E0706", expr, "tensors are computed in kernels, not on the host");
  Scalar type = scalarOf(expr.type);
  if (isFloat(type))
    return -value.asFloat();
  if (type == Scalar::Bool)
    return int64_t{!value.asInt()};
  if (expr.unaryOp == UnaryOp::Not)
    return static_cast<int64_t>(wrapInteger(type, ~value.asInt()));
  const __int128 exact = -__int128(value.asInt()), result = wrapInteger(type, exact);
  return result == exact ? Value(static_cast<int64_t>(result)) : wrapped(type, result, expr);
}

Value Evaluator::evalBinary(const Expr& expr) {
  Value lhs = eval(*expr.args[0]);
  if (interrupted())
    return {};
  if (expr.binaryOp == BinaryOp::And || expr.binaryOp == BinaryOp::Or) {
    if ((lhs.asInt() != 0) == (expr.binaryOp == BinaryOp::Or))
      return lhs;
    return eval(*expr.args[1]);
  }
  Value rhs = eval(*expr.args[1]);
  if (interrupted())
    return {};
  Type type = stripRef(expr.args[0]->type);
  if (type->kind == TypeKind::String) {
    const std::string &a = lhs.asText(), &b = rhs.asText();
    switch (expr.binaryOp) {
    case BinaryOp::Add: return Value::text(a + b);
    case BinaryOp::Eq: return int64_t{a == b};
    case BinaryOp::Ne: return int64_t{a != b};
    case BinaryOp::Lt: return int64_t{a < b};
    case BinaryOp::Le: return int64_t{a <= b};
    case BinaryOp::Gt: return int64_t{a > b};
    default: return int64_t{a >= b};
    }
  }
  if (type->kind != TypeKind::Scalar && type->kind != TypeKind::Enum)
    return fail("E0706", expr, "tensors are computed in kernels, not on the host", "",
                "move this expression into a `kernel`");
  return binary(expr.binaryOp, scalarOf(type), lhs, rhs, expr);
}

static double floatOperation(BinaryOp op, double a, double b) {
  switch (op) {
  case BinaryOp::Add: return a + b;
  case BinaryOp::Sub: return a - b;
  case BinaryOp::Mul: return a * b;
  case BinaryOp::Div: return a / b;
  case BinaryOp::Rem: return std::fmod(a, b);
  case BinaryOp::Pow: return std::pow(a, b);
  default: VORTEX_UNREACHABLE();
  }
}

/// The number that a value of the type holds.
static __int128 exactInteger(Scalar type, const Value& value) {
  return isUnsigned(type) ? __int128(static_cast<uint64_t>(value.asInt())) : __int128(value.asInt());
}

Value Evaluator::binary(BinaryOp op, Scalar type, const Value& lhs, const Value& rhs, const Expr& at) {
  if (isFloat(type)) {
    double a = lhs.asFloat(), b = rhs.asFloat();
    if (auto result = lang::compare(op, a, b))
      return *result;
    // Double rounding through f64 is innocuous for + - * / of formats with at most 24 bits.
    return lang::roundToFloat(type, floatOperation(op, a, b));
  }
  const __int128 a = exactInteger(type, lhs), b = exactInteger(type, rhs);
  if (auto result = lang::compare<__int128>(op, a, b))
    return int64_t{*result};
  const IntegerResult result = integerBinary(op, type, a, b);
  const bool isChecked = op == BinaryOp::Add || op == BinaryOp::Sub || op == BinaryOp::Mul;
  return result.fits || !isChecked ? Value(static_cast<int64_t>(result.value)) : wrapped(type, result.value, at);
}

/// What is left of a number that does not fit its type; with `--check` an error unless the user lifted it.
Value Evaluator::wrapped(Scalar type, __int128 value, const Expr& at) {
  if (!options_.reportsOverflow || at.mayWrap)
    return static_cast<int64_t>(value);
  return fail("E0605", at, base::concat("integer overflow: the result does not fit `", name(type), "` and wraps"),
              "here", "compute in a wider type, or allow it: `@unchecked(overflow)` before the statement or function");
}

Value Evaluator::evalCast(const Expr& expr) {
  Value value = eval(*expr.args[0]);
  if (interrupted())
    return {};
  Type fromType = stripRef(expr.args[0]->type), toType = stripRef(expr.type);
  if ((fromType->kind != TypeKind::Scalar && fromType->kind != TypeKind::Enum) ||
      (toType->kind != TypeKind::Scalar && toType->kind != TypeKind::Enum))
    return fail("E0706", expr, "tensors are converted in kernels, not on the host");
  Scalar from = scalarOf(fromType), to = scalarOf(toType);
  if (isFloat(from)) {
    if (isFloat(to))
      return lang::roundToFloat(to, value.asFloat());
    if (to == Scalar::Bool)
      return int64_t{value.asFloat() != 0};
    return static_cast<int64_t>(saturateToInteger(to, value.asFloat()));
  }
  if (isFloat(to))
    return toFloat(to, isUnsigned(from) ? __int128{static_cast<uint64_t>(value.asInt())} : __int128{value.asInt()});
  if (to == Scalar::Bool)
    return int64_t{value.asInt() != 0};
  return static_cast<int64_t>(wrapInteger(to, value.asInt()));
}

// NaN if either is.
/// IEEE 754's minimum and maximum, as kernels compute them: -0 is less than 0, and NaN stays.
static double smaller(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}
static double larger(double a, double b) { return -smaller(-a, -b); }

static std::optional<double> floatMath(Builtin builtin, std::span<const Value> args) {
  double x = args[0].asFloat();
  auto at = [&](size_t i) { return args[i].asFloat(); };
  switch (builtin) {
#define VORTEX_FLOAT_CASE(id, name, op, function, ...)                                                                 \
  case Builtin::id: return function(x);
    VORTEX_FLOAT_FUNCTIONS(VORTEX_FLOAT_CASE)
#undef VORTEX_FLOAT_CASE
  case Builtin::Atan2: return std::atan2(x, at(1));
  case Builtin::Abs: return std::fabs(x);
  case Builtin::Sign: return x > 0 ? 1 : x < 0 ? -1 : x;
  case Builtin::Fma: return std::fma(x, at(1), at(2));
  case Builtin::Pow: return std::pow(x, at(1));
  case Builtin::Min: return smaller(x, at(1));
  case Builtin::Max: return larger(x, at(1));
  case Builtin::Clamp: return smaller(larger(x, at(1)), at(2));
  default: return std::nullopt;
  }
}

Value Evaluator::math(Builtin builtin, Scalar type, std::span<const Value> args) {
  if (builtin == Builtin::Select)
    return args[0].asInt() ? args[1] : args[2];
  if (builtin == Builtin::ToBits) {
    uint64_t bits = 0;
    storeScalar(type, args[0], reinterpret_cast<uint8_t*>(&bits));
    return static_cast<int64_t>(bits);
  }
  if (isFloat(type)) {
    if (builtin == Builtin::IsNan)
      return int64_t{std::isnan(args[0].asFloat())};
    if (builtin == Builtin::IsInf)
      return int64_t{std::isinf(args[0].asFloat())};
    if (auto result = floatMath(builtin, args))
      return lang::roundToFloat(type, *result);
  } else {
    std::vector<__int128> numbers;
    for (const Value& arg : args)
      numbers.push_back(exactInteger(type, arg));
    if (auto result = integerBuiltin(builtin, type, numbers))
      return static_cast<int64_t>(*result);
  }
  VORTEX_UNREACHABLE("no host implementation of `%s`", std::string(spelling(builtin)).c_str());
}

}  // namespace vortex::host
