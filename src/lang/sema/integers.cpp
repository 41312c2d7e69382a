#include "lang/sema/integers.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/narrow_float.h"

namespace vortex::lang {
namespace {

using Wide = unsigned __int128;

IntegerResult exact(Scalar type, __int128 value) {
  const __int128 wrapped = wrapInteger(type, value);
  return {wrapped, wrapped == value};
}

IntegerResult product(Scalar type, __int128 a, __int128 b) {
  __int128 out = 0;
  const bool isLost = __builtin_mul_overflow(a, b, &out);
  if (isLost)
    return {wrapInteger(type, static_cast<__int128>(static_cast<Wide>(a) * static_cast<Wide>(b))), false};
  return exact(type, out);
}

IntegerResult power(Scalar type, __int128 base, __int128 exponent) {
  if (exponent < 0)
    return {base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0, true};
  IntegerResult out{1, true};
  bool squareFits = true;
  while (exponent > 0) {
    if ((exponent & 1) != 0) {
      const IntegerResult next = product(type, out.value, base);
      out = {next.value, out.fits && next.fits && squareFits};
    }
    exponent >>= 1;
    const IntegerResult square = product(type, base, base);
    base = square.value;
    squareFits = squareFits && square.fits;
  }
  return out;
}

__int128 ceilDiv(__int128 a, __int128 b) {
  if (b == 0)
    return 0;
  return a / b + (a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
}

}  // namespace

std::string decimal(__int128 value) {
  Wide rest = value < 0 ? -static_cast<Wide>(value) : static_cast<Wide>(value);
  std::string digits;
  do
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  while (rest /= 10);
  return value < 0 ? "-" + digits : digits;
}

__int128 lowest(Scalar integer) {
  return isUnsigned(integer) || integer == Scalar::Bool ? 0 : -(static_cast<__int128>(1) << (bitWidth(integer) - 1));
}

__int128 highest(Scalar integer) {
  const bool hasSign = !isUnsigned(integer) && integer != Scalar::Bool;
  return (static_cast<__int128>(1) << (bitWidth(integer) - (hasSign ? 1 : 0))) - 1;
}

__int128 wrapInteger(Scalar type, __int128 value) {
  const Wide mask = (static_cast<Wide>(1) << bitWidth(type)) - 1;
  Wide bits = static_cast<Wide>(value) & mask;
  if (!isUnsigned(type) && type != Scalar::Bool && (bits >> (bitWidth(type) - 1)) != 0)
    bits |= ~mask;
  return static_cast<__int128>(bits);
}

__int128 saturateToInteger(Scalar to, double value) {
  if (std::isnan(value))
    return 0;
  const int bits = static_cast<int>(bitWidth(to));
  const bool hasSign = !isUnsigned(to) && to != Scalar::Bool;
  if (value <= (hasSign ? -std::ldexp(1.0, bits - 1) : 0.0))
    return lowest(to);
  if (value >= std::ldexp(1.0, hasSign ? bits - 1 : bits))
    return highest(to);
  return static_cast<__int128>(value);
}

IntegerResult integerBinary(BinaryOp op, Scalar type, __int128 a, __int128 b) {
  const auto shift = static_cast<unsigned>(static_cast<uint64_t>(b) & (bitWidth(type) - 1));
  switch (op) {
  case BinaryOp::Add: return exact(type, a + b);
  case BinaryOp::Sub: return exact(type, a - b);
  case BinaryOp::Mul: return product(type, a, b);
  case BinaryOp::Div: return b == 0 ? IntegerResult{} : exact(type, a / b);
  case BinaryOp::Rem: return b == 0 ? IntegerResult{} : exact(type, a % b);
  case BinaryOp::Pow: return power(type, a, b);
  case BinaryOp::Shl: return {wrapInteger(type, static_cast<__int128>(static_cast<Wide>(a) << shift)), true};
  case BinaryOp::Shr: return {wrapInteger(type, a >> shift), true};
  case BinaryOp::BitAnd:
  case BinaryOp::And: return {wrapInteger(type, a & b), true};
  case BinaryOp::BitOr:
  case BinaryOp::Or: return {wrapInteger(type, a | b), true};
  case BinaryOp::BitXor: return {wrapInteger(type, a ^ b), true};
  default: VORTEX_UNREACHABLE("a comparison");
  }
}

std::optional<__int128> integerBuiltin(Builtin builtin, Scalar type, std::span<const __int128> args) {
  const auto width = static_cast<int>(bitWidth(type));
  const auto mask = static_cast<uint64_t>((static_cast<Wide>(1) << width) - 1);
  const __int128 x = args[0];
  const uint64_t bits = static_cast<uint64_t>(x) & mask;
  const auto wrapped = [&](__int128 value) { return wrapInteger(type, value); };
  switch (builtin) {
  case Builtin::Abs: return wrapped(x < 0 ? -x : x);
  case Builtin::Sign: return x > 0 ? 1 : x < 0 ? -1 : 0;
  case Builtin::Min: return std::min(x, args[1]);
  case Builtin::Max: return std::max(x, args[1]);
  case Builtin::Clamp: return std::min(std::max(x, args[1]), args[2]);
  case Builtin::Popcount: return std::popcount(bits);
  case Builtin::Clz: return bits != 0 ? std::countl_zero(bits) - (64 - width) : width;
  case Builtin::Ctz: return bits != 0 ? std::countr_zero(bits) : width;
  case Builtin::MulHi:
    return wrapped(isUnsigned(type)
                       ? static_cast<__int128>((static_cast<Wide>(x) * static_cast<Wide>(args[1])) >> width)
                       : (x * args[1]) >> width);
  case Builtin::CeilDiv: return wrapped(ceilDiv(x, args[1]));
  default: return std::nullopt;
  }
}

double roundToFloat(Scalar to, double value) {
  switch (to) {
  case Scalar::F64: return value;
  case Scalar::F16: return base::decodeNarrow(base::kF16, base::encodeNarrow(base::kF16, value));
  case Scalar::BF16: return base::decodeNarrow(base::kBF16, base::encodeNarrow(base::kBF16, value));
  case Scalar::F8E4M3: return base::decodeNarrow(base::kF8E4M3, base::encodeNarrow(base::kF8E4M3, value));
  case Scalar::F8E5M2: return base::decodeNarrow(base::kF8E5M2, base::encodeNarrow(base::kF8E5M2, value));
  default: return static_cast<double>(static_cast<float>(value));
  }
}

double toFloat(Scalar to, __int128 value) {
  double nearest = static_cast<double>(value);
  if (to == Scalar::F64 || static_cast<__int128>(nearest) == value)
    return roundToFloat(to, nearest);
  // Toward zero with the last bit set: what is lost here cannot decide the second rounding.
  const bool isBeyond = value < 0 ? static_cast<__int128>(nearest) < value : static_cast<__int128>(nearest) > value;
  if (isBeyond)
    nearest = std::nextafter(nearest, 0.0);
  return roundToFloat(to, std::bit_cast<double>(std::bit_cast<uint64_t>(nearest) | 1));
}

}  // namespace vortex::lang
