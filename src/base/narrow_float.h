#pragma once

#include <cstdint>

namespace vortex::base {

/// A binary floating-point format of at most 16 bits. `hasInfinity` false: the top exponent is finite except the all-ones NaN (E4M3).
struct NarrowFormat {
  int exponentBits;
  int mantissaBits;
  bool hasInfinity;
};
inline constexpr NarrowFormat kF16{5, 10, true};
inline constexpr NarrowFormat kBF16{8, 7, true};
inline constexpr NarrowFormat kF8E4M3{4, 3, false};  // OCP FP8: max 448, no infinity
inline constexpr NarrowFormat kF8E5M2{5, 2, true};

/// Exact.
double decodeNarrow(NarrowFormat format, uint16_t bits);
/// Round to nearest, ties to even. Overflow gives infinity (E4M3: NaN, as conversion without saturation does in OCP FP8); NaN stays NaN.
uint16_t encodeNarrow(NarrowFormat format, double value);

}  // namespace vortex::base
