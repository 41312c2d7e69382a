// Integers of the 32 lanes of a warp as polynomials: a sum of monomials over unknown numbers that all lanes agree on (block ids, extents, loop
// counters), each with a coefficient per lane. `row * N + k` with a row per lane is {N: rows of the lanes, k: 1 …}.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vortex::lang::access {

inline constexpr unsigned kLanes = 32;
/// Holds every number of 64 bits, with and without sign.
using Wide = __int128;
using Lanes = std::array<Wide, kLanes>;
using SymbolId = uint32_t;
using Monomial = std::vector<SymbolId>;  ///< sorted; {} is the constant part

/// What is known of an unknown number. Inclusive bounds.
struct Symbol {
  std::string name;  ///< in the user's words
  std::optional<Wide> lowest, highest;
  std::vector<Wide> values;  ///< all it can be, if they are few
  bool isExtent = false;     ///< of a tensor; taken as large where only that matters
  bool isUsers = true;       ///< stands in the source under this name
};

bool allEqual(const Lanes& lanes);

class LaneValue {
public:
  LaneValue() = default;
  static LaneValue constant(Wide value);
  static LaneValue ofLanes(const Lanes& lanes);
  static LaneValue symbol(SymbolId id);

  const std::map<Monomial, Lanes>& terms() const { return terms_; }
  /// The monomial {} (zeros if absent).
  const Lanes& fixed() const;
  /// No symbols.
  bool isFixed() const { return terms_.empty() || (terms_.size() == 1 && terms_.begin()->first.empty()); }
  /// All lanes agree.
  bool isUniform() const;
  std::optional<Wide> asNumber() const;
  /// Every coefficient of a symbol is a multiple.
  bool symbolsAreMultiplesOf(Wide divisor) const;
  /// Lane by lane from `a` where chosen, else from `b`.
  static LaneValue merge(const std::array<bool, kLanes>& chosen, const LaneValue& a, const LaneValue& b);

  friend LaneValue operator+(const LaneValue& a, const LaneValue& b);
  friend LaneValue operator-(const LaneValue& a, const LaneValue& b);
  /// Nothing if the product has too many terms to be of use.
  static std::optional<LaneValue> product(const LaneValue& a, const LaneValue& b);
  /// Symbols' coefficients divided exactly, the fixed part rounded down. Requires symbolsAreMultiplesOf(divisor).
  LaneValue dividedBy(Wide divisor) const;
  /// Without the terms of symbols.
  LaneValue fixedPart() const { return ofLanes(fixed()); }

private:
  void add(const Monomial& monomial, const Lanes& lanes, Wide factor);

  std::map<Monomial, Lanes> terms_;  // no zero vectors
};

Wide floorDivide(Wide a, Wide b);  ///< b > 0
Wide floorModulo(Wide a, Wide b);

}  // namespace vortex::lang::access
