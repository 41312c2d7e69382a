// Polynomials with 128-bit coefficients over integer values, in a normal form that makes equality structural.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "base/check.h"
#include "lang/flow/value/ids.h"

namespace vortex::lang::flow {

/// A product of values, sorted; a value twice is its square, {} is the constant. In place: proofs make millions of them.
class Monomial {
public:
  static constexpr size_t kMostFactors = 6;
  using value_type = ValueId;  // for std::back_inserter

  Monomial() = default;
  Monomial(std::initializer_list<ValueId> factors) {
    for (ValueId factor : factors)
      push_back(factor);
  }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const ValueId* begin() const { return factors_.data(); }
  const ValueId* end() const { return factors_.data() + count_; }
  ValueId operator[](size_t index) const { return factors_[index]; }
  void push_back(ValueId factor) {
    VORTEX_CHECK(count_ < kMostFactors, "a product of more than %zu values", kMostFactors);
    factors_[count_++] = factor;
  }
  /// Takes the factor away once. False: it is none.
  bool remove(ValueId factor) {
    const auto last = factors_.begin() + count_, at = std::find(factors_.begin(), last, factor);
    if (at == last)
      return false;
    std::copy(at + 1, last, at);
    factors_[--count_] = ValueId{};
    return true;
  }
  bool operator==(const Monomial&) const = default;
  uint64_t hash() const {
    uint64_t hash = count_;
    for (ValueId factor : *this)
      hash = (hash ^ (indexOf(factor) + uint64_t(1))) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
  }
  /// As words: {} comes first.
  auto operator<=>(const Monomial& other) const {
    return std::lexicographical_compare_three_way(begin(), end(), other.begin(), other.end());
  }

private:
  std::array<ValueId, kMostFactors> factors_{};  // what lies behind the last is 0
  uint32_t count_ = 0;
};

class Polynomial {
public:
  using Terms = std::vector<std::pair<Monomial, __int128>>;  // sorted, no zero coefficients

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
  ValueId asLeaf() const;  ///< kNoValue: it is no single leaf
  __int128 constantPart() const;
  bool mentions(ValueId value) const;
  /// Coefficients replaced by the number nearest to 0 that is equal modulo `modulus`.
  Polynomial reduced(__int128 modulus) const;
  /// What divides all coefficients, the constant too; 0 of nothing.
  __int128 content() const;
  Polynomial dividedBy(__int128 divisor) const;  ///< of all coefficients
  bool operator==(const Polynomial&) const = default;
  uint64_t hash() const;

private:
  bool normalize();

  Terms terms_;
};

/// The terms of `a` as b · quotient + rest, where b is one term with a positive coefficient. `areWhole`: none of them is divided with a rest.
std::pair<Polynomial, Polynomial> splitBy(const Polynomial& a, const Polynomial& b, bool areWhole = false);

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
Interval operator*(__int128 factor, const Interval& a);

}  // namespace vortex::lang::flow
