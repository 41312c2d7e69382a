// For tests: f64 reference values and errors in units of the last place of f32.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "target/interface/math/math.h"

namespace vortex::target::cpu::math {

using namespace target::math;

inline double reference(Unary function, double x) {
  switch (function) {
#define VORTEX_FLOAT_CASE(id, name, op, f, ...)                                                                        \
  case Unary::id: return f(x);
    VORTEX_FLOAT_FUNCTIONS(VORTEX_FLOAT_CASE)
#undef VORTEX_FLOAT_CASE
  case Unary::ExpLimited:
  case Unary::ExpNotTiny: return std::exp(x);
  case Unary::RoundEven: return std::nearbyint(x);
  case Unary::Abs: return std::fabs(x);
  }
  return 0;
}

/// |got − exact| in units of f32's last place at `exact`; 0 for equal infinities and for two NaNs, infinity when only
/// one is special.
inline double ulpError32(float got, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(got) || std::isinf(rounded)) {
    if (got == rounded)
      return 0;
    // One step around the largest finite value is a small error, not a special case.
    const double limit = 0x1p128;
    const double a = std::isinf(got) ? std::copysign(limit, got) : double(got);
    return std::fabs(a - (std::isinf(exact) ? std::copysign(limit, exact) : exact)) / 0x1p104;
  }
  int exponent;
  std::frexp(exact, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(double(got) - exact) / unit;
}

/// The same for f64 against long double.
inline double ulpError64(double got, long double exact) {
  const double rounded = static_cast<double>(exact);
  if (std::isnan(got) || std::isnan(rounded) || std::isinf(got) || std::isinf(rounded))
    return (std::isnan(got) && std::isnan(rounded)) || got == rounded ? 0 : INFINITY;
  int exponent;
  std::frexp(rounded, &exponent);
  return static_cast<double>(std::fabs(got - exact) / std::ldexp(1.0L, std::max(exponent - 53, -1074)));
}

}  // namespace vortex::target::cpu::math
