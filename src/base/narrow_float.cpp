#include "base/narrow_float.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vortex::base {

double decodeNarrow(NarrowFormat format, uint16_t bits) {
  const int bias = (1 << (format.exponentBits - 1)) - 1;
  const int mantissaMask = (1 << format.mantissaBits) - 1;
  const int topExponent = (1 << format.exponentBits) - 1;
  const int mantissa = bits & mantissaMask;
  const int exponent = (bits >> format.mantissaBits) & topExponent;
  const double sign = (bits >> (format.mantissaBits + format.exponentBits)) & 1 ? -1.0 : 1.0;
  if (format.hasInfinity && exponent == topExponent)
    return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (!format.hasInfinity && exponent == topExponent && mantissa == mantissaMask)
    return std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0)
    return sign * std::ldexp(mantissa, 1 - bias - format.mantissaBits);
  return sign * std::ldexp(mantissa + (1 << format.mantissaBits), exponent - bias - format.mantissaBits);
}

uint16_t encodeNarrow(NarrowFormat format, double value) {
  const int bias = (1 << (format.exponentBits - 1)) - 1;
  const int topExponent = (1 << format.exponentBits) - 1;
  const uint16_t sign =
      static_cast<uint16_t>(std::signbit(value) ? 1 << (format.exponentBits + format.mantissaBits) : 0);
  const uint16_t nan =
      static_cast<uint16_t>((topExponent << format.mantissaBits) |
                            (format.hasInfinity ? 1 << (format.mantissaBits - 1) : (1 << format.mantissaBits) - 1));
  const uint16_t overflow = format.hasInfinity ? static_cast<uint16_t>(topExponent << format.mantissaBits) : nan;
  if (std::isnan(value))
    return nan | sign;
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude))
    return overflow | sign;
  if (magnitude == 0)
    return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  // In units of the last place at this exponent; nearbyint rounds ties to even in the default mode.
  double units = std::nearbyint(std::ldexp(magnitude, format.mantissaBits - exponent));
  if (units >= std::ldexp(1.0, format.mantissaBits + 1)) {
    units /= 2;
    ++exponent;
  }
  const int integral = static_cast<int>(units);
  const bool subnormal = integral < (1 << format.mantissaBits);
  const int biased = subnormal ? 0 : exponent + bias;
  const int highest = format.hasInfinity ? topExponent - 1 : topExponent;
  if (biased > highest)
    return overflow | sign;
  const int mantissa = integral & ((1 << format.mantissaBits) - 1);
  if (!format.hasInfinity && biased == topExponent && mantissa == (1 << format.mantissaBits) - 1)
    return overflow | sign;
  return static_cast<uint16_t>(sign | (biased << format.mantissaBits) | mantissa);
}

}  // namespace vortex::base
