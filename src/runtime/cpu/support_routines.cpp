#include "runtime/cpu/support_routines.h"

#include <bit>

namespace vortex::cpu {

namespace {

/// A float format with `exponentBits` and `fractionBits`, from the bits of a double: one rounding, as the operation demands.
uint16_t truncateTo(double value, int exponentBits, int fractionBits) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 63 << 15);
  const int maxExponent = (1 << exponentBits) - 1, bias = maxExponent >> 1;
  const auto infinity = static_cast<uint16_t>(maxExponent << fractionBits);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == 0x7ff)
    return static_cast<uint16_t>(sign | infinity | (fraction != 0 ? (1 << (fractionBits - 1)) | fraction >> (52 - fractionBits) : 0));
  if (exponent == 0)
    return sign; // subnormal doubles lie far below the smallest half and bfloat
  const int target = exponent - 1023 + bias;
  if (target >= maxExponent)
    return sign | infinity;
  // Below the normal range the significand moves right; beyond every bit only the rounding of zero remains.
  const int shift = 52 - fractionBits + (target < 1 ? 1 - target : 0);
  if (shift > 53)
    return sign;
  const uint64_t significand = fraction | uint64_t{1} << 52;
  const uint64_t kept = significand >> shift, rest = significand & ((uint64_t{1} << shift) - 1), half = uint64_t{1} << (shift - 1);
  const uint64_t rounded = kept + (rest > half || (rest == half && (kept & 1)));
  // The hidden bit and a carry out of the rounding both add to the exponent field, up to infinity.
  const uint64_t encoded = target < 1 ? rounded : (static_cast<uint64_t>(target - 1) << fractionBits) + rounded;
  return static_cast<uint16_t>(sign | encoded);
}

} // namespace

float extendHalf(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f)
    return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13 | (fraction != 0 ? 0x400000 : 0));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t truncateToHalf(double value) { return truncateTo(value, 5, 10); }
uint16_t truncateToBFloat(double value) { return truncateTo(value, 8, 7); }

} // namespace vortex::cpu
