// Polynomials with 128-bit coefficients over integer values, in a normal form that makes equality structural.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "lang/flow/value/ids.h"

namespace vortex::lang::flow {

using Monomial = std::vector<ValueId>;  ///< sorted; a value twice is its square, {} is the constant

class Polynomial {
public:
  using Terms = std::map<Monomial, __int128>;  // no zero coefficients

  Polynomial() = default;
  static Polynomial constant(__int128 value);
  static Polynomial leaf(ValueId value);
  static Polynomial of(const Monomial& monomial, __int128 coefficient);
  /// a + factor · b, and a · b. Nothing: a coefficient would leave ±2^100, or there would be too many terms or factors to be of use.
  static std::optional<Polynomial> sum(const Polynomial& a, const Polynomial& b, __int128 factor = 1);
  static std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b);

  const Terms& terms() const { return terms_; }
  bool isZero() const { return terms_.empty(); }
  std::optional<__int128> asConstant() const;
  __int128 constantPart() const;
  bool mentions(ValueId value) const;
  /// Coefficients replaced by the number nearest to 0 that is equal modulo `modulus`.
  Polynomial reduced(__int128 modulus) const;
  bool operator==(const Polynomial&) const = default;

private:
  bool add(const Monomial& monomial, __int128 coefficient);

  Terms terms_;
};

__int128 floorDivide(__int128 a, __int128 b);  ///< b > 0
__int128 ceilDivide(__int128 a, __int128 b);   ///< b > 0
__int128 greatestDivisor(__int128 a, __int128 b);

/// Inclusive bounds; those at ±kUnbounded stand for infinity.
struct Interval {
  static constexpr __int128 kUnbounded = __int128(1) << 120;
  __int128 low = -kUnbounded, high = kUnbounded;

  bool isWithin(__int128 lowest, __int128 highest) const { return lowest <= low && high <= highest; }
  std::optional<__int128> asConstant() const { return low == high ? std::optional(low) : std::nullopt; }
  Interval meet(const Interval& other) const;  ///< itself where they have nothing in common
  Interval hull(const Interval& other) const;
  bool operator==(const Interval&) const = default;
};
Interval operator+(const Interval& a, const Interval& b);
Interval operator*(const Interval& a, const Interval& b);

}  // namespace vortex::lang::flow
