#include "host/evaluator_state.h"

#include <bit>
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
  return wrapInteger(type, expr.unaryOp == UnaryOp::Neg ? -__int128(value.asInt()) : __int128(~value.asInt()));
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
  return binary(expr.binaryOp, scalarOf(type), lhs, rhs);
}

template <class T> static std::optional<int64_t> compare(BinaryOp op, T a, T b) {
  switch (op) {
  case BinaryOp::Eq: return a == b;
  case BinaryOp::Ne: return a != b;
  case BinaryOp::Lt: return a < b;
  case BinaryOp::Le: return a <= b;
  case BinaryOp::Gt: return a > b;
  case BinaryOp::Ge: return a >= b;
  default: return std::nullopt;
  }
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

static __int128 power(__int128 base, __int128 exponent, Scalar type) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  __int128 result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1)
      result = wrapInteger(type, result * base);
    base = wrapInteger(type, base * base);
  }
  return result;
}

/// Total: x / 0 = x % 0 = 0, shift counts modulo the width, results wrap.
static int64_t integerOperation(BinaryOp op, Scalar type, int64_t lhs, int64_t rhs) {
  auto widen = [type](int64_t value) -> __int128 {
    return isUnsigned(type) ? __int128(static_cast<uint64_t>(value)) : __int128(value);
  };
  __int128 a = widen(lhs), b = widen(rhs);
  unsigned shift = static_cast<unsigned>(static_cast<uint64_t>(rhs) & (bitWidth(type) - 1));
  switch (op) {
  case BinaryOp::Add: return wrapInteger(type, a + b);
  case BinaryOp::Sub: return wrapInteger(type, a - b);
  case BinaryOp::Mul:
    return wrapInteger(type,
                       static_cast<__int128>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b)));
  case BinaryOp::Div: return b == 0 ? 0 : wrapInteger(type, a / b);
  case BinaryOp::Rem: return b == 0 ? 0 : wrapInteger(type, a % b);
  case BinaryOp::Pow: return wrapInteger(type, power(a, b, type));
  case BinaryOp::Shl: return wrapInteger(type, static_cast<__int128>(static_cast<unsigned __int128>(a) << shift));
  case BinaryOp::Shr: return wrapInteger(type, a >> shift);
  case BinaryOp::BitAnd: return lhs & rhs;
  case BinaryOp::BitOr: return lhs | rhs;
  case BinaryOp::BitXor: return lhs ^ rhs;
  default: VORTEX_UNREACHABLE();
  }
}

Value Evaluator::binary(BinaryOp op, Scalar type, const Value& lhs, const Value& rhs) {
  if (isFloat(type)) {
    double a = lhs.asFloat(), b = rhs.asFloat();
    if (auto result = compare(op, a, b))
      return *result;
    // Double rounding through f64 is innocuous for + - * / of formats with at most 24 bits.
    return roundFloat(type, floatOperation(op, a, b));
  }
  if (isUnsigned(type)) {
    if (auto result = compare(op, static_cast<uint64_t>(lhs.asInt()), static_cast<uint64_t>(rhs.asInt())))
      return *result;
  } else if (auto result = compare(op, lhs.asInt(), rhs.asInt())) {
    return *result;
  }
  return integerOperation(op, type, lhs.asInt(), rhs.asInt());
}

/// Toward zero, saturating, NaN to 0.
static int64_t saturate(Scalar type, double value) {
  if (std::isnan(value))
    return 0;
  unsigned bits = bitWidth(type);
  double low = isUnsigned(type) ? 0 : -std::ldexp(1.0, static_cast<int>(bits) - 1);
  double high = std::ldexp(1.0, static_cast<int>(isUnsigned(type) ? bits : bits - 1));
  value = std::trunc(value);
  if (value <= low)
    return wrapInteger(type, static_cast<__int128>(low));
  if (value >= high)
    return wrapInteger(type, static_cast<__int128>(high) - 1);
  return wrapInteger(type, static_cast<__int128>(value));
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
      return roundFloat(to, value.asFloat());
    if (to == Scalar::Bool)
      return int64_t{value.asFloat() != 0};
    return saturate(to, value.asFloat());
  }
  if (isFloat(to)) {
    // Straight from the integer, so that f32 rounds once.
    if (to == Scalar::F32)
      return double{isUnsigned(from) ? static_cast<float>(static_cast<uint64_t>(value.asInt()))
                                     : static_cast<float>(value.asInt())};
    return roundFloat(to, isUnsigned(from) ? static_cast<double>(static_cast<uint64_t>(value.asInt()))
                                           : static_cast<double>(value.asInt()));
  }
  if (to == Scalar::Bool)
    return int64_t{value.asInt() != 0};
  return wrapInteger(to, value.asInt());
}

static std::optional<double> floatMath(Builtin builtin, std::span<const Value> args) {
  double x = args[0].asFloat();
  auto at = [&](size_t i) { return args[i].asFloat(); };
  switch (builtin) {
  case Builtin::Exp: return std::exp(x);
  case Builtin::Exp2: return std::exp2(x);
  case Builtin::Log: return std::log(x);
  case Builtin::Log2: return std::log2(x);
  case Builtin::Log10: return std::log10(x);
  case Builtin::Sin: return std::sin(x);
  case Builtin::Cos: return std::cos(x);
  case Builtin::Tan: return std::tan(x);
  case Builtin::Asin: return std::asin(x);
  case Builtin::Acos: return std::acos(x);
  case Builtin::Atan: return std::atan(x);
  case Builtin::Atan2: return std::atan2(x, at(1));
  case Builtin::Sinh: return std::sinh(x);
  case Builtin::Cosh: return std::cosh(x);
  case Builtin::Tanh: return std::tanh(x);
  case Builtin::Erf: return std::erf(x);
  case Builtin::Sqrt: return std::sqrt(x);
  case Builtin::Rsqrt: return 1 / std::sqrt(x);
  case Builtin::Cbrt: return std::cbrt(x);
  case Builtin::Abs: return std::fabs(x);
  case Builtin::Sign: return x > 0 ? 1 : x < 0 ? -1 : x;
  case Builtin::Floor: return std::floor(x);
  case Builtin::Ceil: return std::ceil(x);
  case Builtin::Round: return std::nearbyint(x);
  case Builtin::Trunc: return std::trunc(x);
  case Builtin::Fma: return std::fma(x, at(1), at(2));
  case Builtin::Pow: return std::pow(x, at(1));
  case Builtin::Min: return std::isnan(x) || std::isnan(at(1)) ? NAN : std::fmin(x, at(1));
  case Builtin::Max: return std::isnan(x) || std::isnan(at(1)) ? NAN : std::fmax(x, at(1));
  case Builtin::Clamp: return std::fmin(std::fmax(x, at(1)), at(2));
  case Builtin::Sigmoid: return 1 / (1 + std::exp(-x));
  default: return std::nullopt;
  }
}

static std::optional<__int128> integerMath(Builtin builtin, Scalar type, std::span<const Value> args) {
  auto at = [&](size_t i) -> __int128 {
    return isUnsigned(type) ? __int128(static_cast<uint64_t>(args[i].asInt())) : args[i].asInt();
  };
  uint64_t bits = static_cast<uint64_t>(args[0].asInt());
  if (bitWidth(type) < 64)
    bits &= (uint64_t{1} << bitWidth(type)) - 1;
  int width = static_cast<int>(bitWidth(type));
  switch (builtin) {
  case Builtin::Abs: return at(0) < 0 ? -at(0) : at(0);
  case Builtin::Sign: return at(0) > 0 ? 1 : at(0) < 0 ? -1 : 0;
  case Builtin::Min: return std::min(at(0), at(1));
  case Builtin::Max: return std::max(at(0), at(1));
  case Builtin::Clamp: return std::min(std::max(at(0), at(1)), at(2));
  case Builtin::Popcount: return std::popcount(bits);
  case Builtin::Clz: return bits ? std::countl_zero(bits) - (64 - width) : width;
  case Builtin::Ctz: return bits ? std::countr_zero(bits) : width;
  case Builtin::MulHi:
    return isUnsigned(type)
               ? static_cast<__int128>(
                     (static_cast<unsigned __int128>(at(0)) * static_cast<unsigned __int128>(at(1))) >> width)
               : (at(0) * at(1)) >> width;
  case Builtin::CeilDiv: return at(1) == 0 ? 0 : (at(0) + at(1) - 1) / at(1);
  default: return std::nullopt;
  }
}

Value Evaluator::math(Builtin builtin, Scalar type, std::span<const Value> args) {
  if (builtin == Builtin::Select)
    return args[0].asInt() ? args[1] : args[2];
  if (isFloat(type)) {
    if (builtin == Builtin::IsNan)
      return int64_t{std::isnan(args[0].asFloat())};
    if (builtin == Builtin::IsInf)
      return int64_t{std::isinf(args[0].asFloat())};
    if (auto result = floatMath(builtin, args))
      return roundFloat(type, *result);
  } else if (auto result = integerMath(builtin, type, args)) {
    return wrapInteger(type, *result);
  }
  VORTEX_UNREACHABLE("no host implementation of `%s`", std::string(spelling(builtin)).c_str());
}

}  // namespace vortex::host
