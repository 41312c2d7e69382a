#include "runtime/cpu/support_routines.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace vortex::cpu {

namespace {

/// Judge: the value a half or bfloat encodes, from the definition.
double decode(uint16_t bits, int exponentBits, int fractionBits) {
  const int maxExponent = (1 << exponentBits) - 1, bias = maxExponent / 2;
  const int exponent = bits >> fractionBits & maxExponent, fraction = bits & ((1 << fractionBits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == maxExponent)
    return fraction ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(fraction, 1 - bias - fractionBits);
  return sign * std::ldexp((1 << fractionBits) + fraction, exponent - bias - fractionBits);
}

/// Nearest encodable value, ties to even, by search over neighbours.
bool isNearest(double value, uint16_t bits, int exponentBits, int fractionBits) {
  if (std::isnan(value))
    return std::isnan(decode(bits, exponentBits, fractionBits));
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponentBits) - 1) << fractionBits), magnitude = bits & 0x7fff;
  if ((bits & 0x8000) != 0 != std::signbit(value) || magnitude > infinity)
    return false;
  // Infinity takes the place of the next power of two when distances are compared.
  const auto at = [&](int code) { return code == infinity ? std::ldexp(1.0, 1 << (exponentBits - 1)) : decode(static_cast<uint16_t>(code), exponentBits, fractionBits); };
  const double target = std::min(std::fabs(value), at(infinity)), distance = std::fabs(target - at(magnitude));
  for (int other : {magnitude - 1, magnitude + 1}) {
    if (other < 0 || other > infinity)
      continue;
    const double theirs = std::fabs(target - at(other));
    if (theirs < distance || (theirs == distance && (magnitude & 1)))
      return false;
  }
  return true;
}

TEST(SupportRoutines, ExtendingAHalfIsExactForAllValues) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double expected = decode(static_cast<uint16_t>(bits), 5, 10);
    const float value = extendHalf(static_cast<uint16_t>(bits));
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(value) : value == expected && std::signbit(value) == std::signbit(expected)) << bits;
  }
}

TEST(SupportRoutines, TruncationsRoundToNearestEven) {
  std::mt19937_64 random(5);
  std::vector<double> values = {0.0, -0.0, INFINITY, -INFINITY, NAN, 65504, 65519.99, 65520, 5.96e-8, 2.98e-8, 2.9802322387695312e-8, 1e-45, 1e300, -1e-320};
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) { // every half, the midpoint above it, and a hair beside that
    const double low = decode(static_cast<uint16_t>(bits), 5, 10), high = bits + 1 < 0x7c00 ? decode(static_cast<uint16_t>(bits + 1), 5, 10) : 65536;
    for (double value : {low, (low + high) / 2, std::nextafter((low + high) / 2, 0.0), std::nextafter((low + high) / 2, 1e9)})
      values.push_back(bits % 2 ? -value : value);
  }
  for (int i = 0; i < 100000; ++i)
    values.push_back(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(random()))));
  for (double value : values) {
    ASSERT_TRUE(isNearest(value, truncateToHalf(value), 5, 10)) << value;
    ASSERT_TRUE(isNearest(value, truncateToBFloat(value), 8, 7)) << value;
  }
}

} // namespace

} // namespace vortex::cpu
