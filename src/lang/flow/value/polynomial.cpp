#include "lang/flow/value/polynomial.h"

#include <algorithm>
#include <iterator>

namespace vortex::lang::flow {

constexpr __int128 kMostCoefficient = __int128(1) << 100;
constexpr size_t kMostTerms = 32, kMostFactors = 6;

Polynomial Polynomial::constant(__int128 value) { return of({}, value); }

Polynomial Polynomial::leaf(ValueId value) { return of({value}, 1); }

Polynomial Polynomial::of(const Monomial& monomial, __int128 coefficient) {
  Polynomial result;
  if (coefficient != 0)
    result.terms_.emplace(monomial, coefficient);
  return result;
}

bool Polynomial::add(const Monomial& monomial, __int128 coefficient) {
  __int128& sum = terms_[monomial];
  sum += coefficient;
  const bool isSmall = -kMostCoefficient <= sum && sum <= kMostCoefficient;
  if (sum == 0)
    terms_.erase(monomial);
  return isSmall;
}

/// Nothing where the product leaves ±kMostCoefficient.
static std::optional<__int128> times(__int128 a, __int128 b) {
  __int128 product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > kMostCoefficient || product < -kMostCoefficient)
    return std::nullopt;
  return product;
}

std::optional<Polynomial> Polynomial::sum(const Polynomial& a, const Polynomial& b, __int128 factor) {
  Polynomial result = a;
  for (const auto& [monomial, coefficient] : b.terms_) {
    const auto scaled = times(coefficient, factor);
    if (!scaled || !result.add(monomial, *scaled))
      return std::nullopt;
  }
  return result.terms_.size() <= kMostTerms ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<Polynomial> Polynomial::product(const Polynomial& a, const Polynomial& b) {
  Polynomial result;
  for (const auto& [x, xs] : a.terms_)
    for (const auto& [y, ys] : b.terms_) {
      const auto coefficient = times(xs, ys);
      if (!coefficient || x.size() + y.size() > kMostFactors)
        return std::nullopt;
      Monomial both;
      both.reserve(x.size() + y.size());
      std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
      if (!result.add(both, *coefficient))
        return std::nullopt;
    }
  return result.terms_.size() <= kMostTerms ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<__int128> Polynomial::asConstant() const {
  if (terms_.empty())
    return 0;
  return terms_.size() == 1 && terms_.begin()->first.empty() ? std::optional(terms_.begin()->second) : std::nullopt;
}

__int128 Polynomial::constantPart() const {
  const auto found = terms_.find({});
  return found == terms_.end() ? 0 : found->second;
}

bool Polynomial::mentions(ValueId value) const {
  return std::any_of(terms_.begin(), terms_.end(), [&](const auto& term) {
    return std::find(term.first.begin(), term.first.end(), value) != term.first.end();
  });
}

Polynomial Polynomial::reduced(__int128 modulus) const {
  Polynomial result;
  for (const auto& [monomial, coefficient] : terms_) {
    __int128 rest = coefficient - floorDivide(coefficient, modulus) * modulus;
    if (rest > modulus / 2)
      rest -= modulus;
    if (rest != 0)
      result.terms_.emplace(monomial, rest);
  }
  return result;
}

__int128 floorDivide(__int128 a, __int128 b) { return a / b - (a % b < 0 ? 1 : 0); }
__int128 ceilDivide(__int128 a, __int128 b) { return a / b + (a % b > 0 ? 1 : 0); }

__int128 greatestDivisor(__int128 a, __int128 b) {
  a = a < 0 ? -a : a;
  b = b < 0 ? -b : b;
  while (b != 0) {
    const __int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

//===-- intervals -------------------------------------------------------------------------------------------------===//

Interval Interval::meet(const Interval& other) const {
  const Interval both{std::max(low, other.low), std::min(high, other.high)};
  return both.low <= both.high ? both : *this;
}

Interval Interval::hull(const Interval& other) const { return {std::min(low, other.low), std::max(high, other.high)}; }

/// Infinity stays infinity, whatever is added.
static __int128 addLow(__int128 a, __int128 b) {
  constexpr __int128 kMost = Interval::kUnbounded;
  return a <= -kMost || b <= -kMost ? -kMost : std::clamp(a + b, -kMost, kMost);
}

static __int128 addHigh(__int128 a, __int128 b) {
  constexpr __int128 kMost = Interval::kUnbounded;
  return a >= kMost || b >= kMost ? kMost : std::clamp(a + b, -kMost, kMost);
}

static __int128 multiplyBounds(__int128 a, __int128 b) {
  constexpr __int128 kMost = Interval::kUnbounded;
  __int128 product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    return (a < 0) == (b < 0) ? kMost : -kMost;
  return std::clamp(product, -kMost, kMost);
}

Interval operator+(const Interval& a, const Interval& b) { return {addLow(a.low, b.low), addHigh(a.high, b.high)}; }

Interval operator*(const Interval& a, const Interval& b) {
  const auto [low, high] = std::minmax({multiplyBounds(a.low, b.low), multiplyBounds(a.low, b.high),
                                        multiplyBounds(a.high, b.low), multiplyBounds(a.high, b.high)});
  return {low, high};
}

}  // namespace vortex::lang::flow
