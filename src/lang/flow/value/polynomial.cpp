#include "lang/flow/value/polynomial.h"

#include <algorithm>
#include <iterator>

namespace vortex::lang::flow {

constexpr __int128 kMostCoefficient = __int128(1) << 100;
constexpr size_t kMostTerms = 32;

Polynomial Polynomial::constant(__int128 value) { return of({}, value); }

Polynomial Polynomial::leaf(ValueId value) { return of({value}, 1); }

Polynomial Polynomial::of(const Monomial& monomial, __int128 coefficient) {
  Polynomial result;
  if (coefficient != 0)
    result.terms_.emplace_back(monomial, coefficient);
  return result;
}

static bool isSmall(__int128 coefficient) {
  return -kMostCoefficient <= coefficient && coefficient <= kMostCoefficient;
}

/// Nothing where the product leaves ±kMostCoefficient.
static std::optional<__int128> times(__int128 a, __int128 b) {
  __int128 product = 0;
  if (__builtin_mul_overflow(a, b, &product) || !isSmall(product))
    return std::nullopt;
  return product;
}

std::optional<Polynomial> Polynomial::sum(const Polynomial& a, const Polynomial& b, __int128 factor) {
  Polynomial result;
  result.terms_.reserve(a.terms_.size() + b.terms_.size());
  auto x = a.terms_.begin();
  for (const auto& [monomial, coefficient] : b.terms_) {
    const auto scaled = times(coefficient, factor);
    if (!scaled)
      return std::nullopt;
    for (; x != a.terms_.end() && x->first < monomial; ++x)
      result.terms_.push_back(*x);
    __int128 sum = *scaled;
    if (x != a.terms_.end() && x->first == monomial)
      sum += (x++)->second;
    if (!isSmall(sum))
      return std::nullopt;
    if (sum != 0)
      result.terms_.emplace_back(monomial, sum);
  }
  result.terms_.insert(result.terms_.end(), x, a.terms_.end());
  return result.terms_.size() <= kMostTerms ? std::optional(std::move(result)) : std::nullopt;
}

std::optional<Polynomial> Polynomial::product(const Polynomial& a, const Polynomial& b) {
  Polynomial result;
  result.terms_.reserve(a.terms_.size() * b.terms_.size());
  for (const auto& [x, xs] : a.terms_)
    for (const auto& [y, ys] : b.terms_) {
      const auto coefficient = times(xs, ys);
      if (!coefficient || x.size() + y.size() > Monomial::kMostFactors)
        return std::nullopt;
      Monomial both;
      std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
      result.terms_.emplace_back(both, *coefficient);
    }
  return result.normalize() ? std::optional(std::move(result)) : std::nullopt;
}

/// Sorts and joins terms. False: there are too many, or a coefficient is too large.
bool Polynomial::normalize() {
  std::sort(terms_.begin(), terms_.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  size_t kept = 0;
  for (size_t i = 0; i < terms_.size();) {
    auto [monomial, sum] = terms_[i];
    for (++i; i < terms_.size() && terms_[i].first == monomial; ++i) {
      sum += terms_[i].second;
      if (!isSmall(sum))
        return false;
    }
    if (sum != 0)
      terms_[kept++] = {monomial, sum};
  }
  terms_.resize(kept);
  return terms_.size() <= kMostTerms;
}

std::optional<__int128> Polynomial::asConstant() const {
  if (terms_.empty())
    return 0;
  return terms_.size() == 1 && terms_.begin()->first.empty() ? std::optional(terms_.begin()->second) : std::nullopt;
}

ValueId Polynomial::asLeaf() const {
  const bool isLeaf = terms_.size() == 1 && terms_[0].second == 1 && terms_[0].first.size() == 1;
  return isLeaf ? terms_[0].first[0] : kNoValue;
}

__int128 Polynomial::constantPart() const {
  return terms_.empty() || !terms_.front().first.empty() ? 0 : terms_.front().second;
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
      result.terms_.emplace_back(monomial, rest);
  }
  return result;
}

__int128 Polynomial::content() const {
  __int128 common = 0;
  for (const auto& [monomial, coefficient] : terms_)
    common = greatestDivisor(common, coefficient);
  return common;
}

Polynomial Polynomial::dividedBy(__int128 divisor) const {
  Polynomial result = *this;
  for (auto& [monomial, coefficient] : result.terms_)
    coefficient /= divisor;
  return result;
}

uint64_t Polynomial::hash() const {
  uint64_t hash = terms_.size();
  const auto mix = [&](uint64_t number) {
    hash = (hash ^ number) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  };
  for (const auto& [monomial, coefficient] : terms_) {
    for (ValueId leaf : monomial)
      mix(indexOf(leaf) + uint64_t(1));
    mix(static_cast<uint64_t>(coefficient));
    mix(static_cast<uint64_t>(coefficient >> 64));
  }
  return hash;
}

std::pair<Polynomial, Polynomial> splitBy(const Polynomial& a, const Polynomial& b, bool areWhole) {
  const auto& [divisor, scale] = *b.terms().begin();
  Polynomial quotient, rest;
  for (const auto& [monomial, coefficient] : a.terms()) {
    if (!std::includes(monomial.begin(), monomial.end(), divisor.begin(), divisor.end())) {
      rest = *Polynomial::sum(rest, Polynomial::of(monomial, coefficient));
      continue;
    }
    Monomial others;
    std::set_difference(monomial.begin(), monomial.end(), divisor.begin(), divisor.end(), std::back_inserter(others));
    const __int128 times = areWhole && coefficient % scale != 0 ? 0 : floorDivide(coefficient, scale);
    quotient = *Polynomial::sum(quotient, Polynomial::of(others, times));
    rest = *Polynomial::sum(rest, Polynomial::of(monomial, coefficient - times * scale));
  }
  return {quotient, rest};
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

constexpr __int128 kSmall = __int128(1) << 59;  // products of two stay bounded

Interval operator*(__int128 factor, const Interval& a) {
  if (-kSmall <= factor && factor <= kSmall && a.isWithin(-kSmall, kSmall))
    return factor < 0 ? Interval{factor * a.high, factor * a.low} : Interval{factor * a.low, factor * a.high};
  const __int128 low = multiplyBounds(factor, a.low), high = multiplyBounds(factor, a.high);
  return factor < 0 ? Interval{high, low} : Interval{low, high};
}

Interval operator*(const Interval& a, const Interval& b) {
  if (a.isWithin(-kSmall, kSmall) && b.isWithin(-kSmall, kSmall)) {
    if (a.low >= 0 && b.low >= 0)
      return {a.low * b.low, a.high * b.high};
    const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    return {low, high};
  }
  const auto [low, high] = std::minmax({multiplyBounds(a.low, b.low), multiplyBounds(a.low, b.high),
                                        multiplyBounds(a.high, b.low), multiplyBounds(a.high, b.high)});
  return {low, high};
}

}  // namespace vortex::lang::flow
