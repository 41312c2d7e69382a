// What Values remembers of one point: private to its sources.
#pragma once

#include "lang/flow/value/value.h"

namespace vortex::lang::flow {

struct Values::Context {
  std::vector<Condition> conditions;
  std::vector<Polynomial> atLeastZero, notZero;    ///< by the conditions
  std::set<ValueId> powers;                        ///< of two, or 0
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

  struct Remainder {
    ValueId leaf = kNoValue;
    Polynomial multiple;  ///< of the modulus: what the remainder is taken of, less the remainder
    __int128 modulus = 0;
  };
  std::vector<Remainder> remainders;
  std::vector<Polynomial> equalities;  ///< what is 0, by the conditions
  bool areRemaindersKnown = false;

  // What was found, or not proven, while inequalities of a leaf were still being looked for may be too little: it is forgotten behind that.
  unsigned incomplete = 0;
  std::vector<uint32_t> partialLeaves;
  std::vector<Polynomial> notProven;

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
    equalities.clear();
    areRemaindersKnown = false;
  }
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
