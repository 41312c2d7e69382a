// Integers of the 32 lanes of a warp as polynomials: a sum of monomials over numbers that all lanes agree on (block ids, extents, loop counters),
// each with a coefficient per lane. `row * N + k` with a row per lane is {N: rows of the lanes, k: 1 …}.
#pragma once

#include "lang/flow/value/polynomial.h"

namespace vortex::lang::flow {

inline constexpr unsigned kLanes = 32;
using LaneNumbers = std::array<__int128, kLanes>;

bool allEqual(const LaneNumbers& numbers);
__int128 floorModulo(__int128 a, __int128 b);  ///< b > 0

/// Coefficients wrap at 128 bits: a value is known modulo the numbers of its type, which divide those.
class Lanes {
public:
  using Terms = std::vector<std::pair<Monomial, LaneNumbers>>;  // sorted, none of zeros alone

  Lanes() = default;
  static Lanes constant(__int128 value);
  static Lanes of(const LaneNumbers& numbers);
  static Lanes leaf(ValueId leaf);
  /// Nothing if the product has too many terms or factors to be of use.
  static std::optional<Lanes> product(const Lanes& a, const Lanes& b);
  /// Lane by lane from `a` where chosen, else from `b`.
  static Lanes merge(const std::array<bool, kLanes>& chosen, const Lanes& a, const Lanes& b);
  friend Lanes operator+(const Lanes& a, const Lanes& b) { return a.plus(b, 1); }
  friend Lanes operator-(const Lanes& a, const Lanes& b) { return a.plus(b, -1); }

  const Terms& terms() const { return terms_; }
  /// The part without leaves.
  const LaneNumbers& numbers() const;
  /// What the lanes differ from lane 0 by.
  Lanes fromFirst() const;
  bool isNumbers() const { return terms_.empty() || (terms_.size() == 1 && terms_[0].first.empty()); }
  /// All lanes agree.
  bool isSame() const;
  /// One number for all.
  std::optional<__int128> asConstant() const;
  /// Every coefficient of a leaf is a multiple.
  bool leavesAreMultiplesOf(__int128 divisor) const;
  /// Coefficients of leaves divided exactly, numbers rounded down. Requires leavesAreMultiplesOf(divisor).
  Lanes dividedBy(__int128 divisor) const;

private:
  Lanes plus(const Lanes& other, __int128 factor) const;
  void add(const Monomial& monomial, const LaneNumbers& numbers, __int128 factor);

  Terms terms_;
};

}  // namespace vortex::lang::flow
