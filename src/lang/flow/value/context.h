// What Values remembers of one point: private to its sources.
#pragma once

#include <unordered_set>

#include "lang/flow/value/value.h"

namespace vortex::lang::flow {

struct Values::Context {
  std::vector<Condition> conditions;
  std::vector<Polynomial> atLeastZero, notZero;    ///< by the conditions
  std::unordered_map<uint32_t, Interval> refined;  ///< of leaves, by the conditions
  // memos
  std::unordered_map<uint32_t, Form> forms;
  struct Hash {
    size_t operator()(const Monomial& monomial) const { return monomial.hash(); }
    size_t operator()(const Polynomial& polynomial) const { return polynomial.hash(); }
  };
  std::unordered_map<uint32_t, Interval> ranges;
  std::unordered_map<Monomial, Interval, Hash> products;  ///< ranges of two and more leaves
  std::unordered_map<uint32_t, std::vector<Polynomial>> inequalities;
  std::unordered_map<Polynomial, bool, Hash> isAtLeastZero;

  std::vector<std::pair<Polynomial, __int128>> remainders;  ///< multiples of the number
  bool areRemaindersKnown = false;

  std::set<ValueId> computing;  ///< their forms: whoever asks meanwhile gets a leaf

  void narrow(ValueId leaf, const Interval& range) {
    refined[indexOf(leaf)] = range;
    ranges[indexOf(leaf)] = range;
    products.clear();
  }
  void forget() {
    forms.clear();
    ranges.clear();
    products.clear();
    inequalities.clear();
    isAtLeastZero.clear();
    remainders.clear();
    areRemaindersKnown = false;
  }
};

/// How much one proof may cost. Counts of steps, so that an answer never depends on the machine.
struct Values::Search {
  unsigned budget = 400;
  std::unordered_set<uint64_t> seen;  ///< hashes of what was tried: another order of the same steps proves no more
};

inline std::optional<Polynomial> difference(const Polynomial& a, const Polynomial& b) {
  return Polynomial::sum(a, b, -1);
}

/// `polynomial` + number; nothing where `polynomial` is nothing.
inline std::optional<Polynomial> plus(const std::optional<Polynomial>& polynomial, __int128 number) {
  return polynomial ? Polynomial::sum(*polynomial, Polynomial::constant(number)) : std::nullopt;
}

/// The exponent of a power of two.
inline std::optional<unsigned> exponentOf(__int128 number) {
  for (unsigned exponent = 0; exponent < 64; ++exponent)
    if (number == __int128(1) << exponent)
      return exponent;
  return std::nullopt;
}

}  // namespace vortex::lang::flow
