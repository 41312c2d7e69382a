// Numbers that would all have to be 0 for two accesses to meet, and what follows from that: the digits of `row * N + column`, quotients and remainders
// in any mixture of radices, and numbers computed from equal ones.
#pragma once

#include <unordered_map>

#include "lang/flow/value/value.h"

namespace vortex::lang::flow {

class Equations {
public:
  Equations(NodeTable& nodes, Values& values, PointId point) : nodes_(nodes), values_(values), point_(point) {}

  /// `zeros`: what would be 0. True: they cannot be. Else `areEqual` tells what follows from them.
  bool areContradictory(std::vector<Polynomial> zeros);
  bool areEqual(ValueId a, ValueId b);
  bool isTakenApart() const { return tests_ > 0; }

private:
  bool settle(size_t index);
  std::optional<Polynomial> inDigits(const Polynomial& zero);
  bool splitAtAnyUnit(size_t index);
  bool splitAt(size_t index, const Monomial& leaf, __int128 number);
  bool substitute(const Polynomial& zero);
  void addDigits(ValueId a, ValueId b);
  Polynomial flatQuotient(ValueId dividend, ValueId divisor);
  void add(const std::optional<Polynomial>& zero);

  Polynomial rewritten(const Polynomial& polynomial, unsigned depth = 0);
  Polynomial rewritten(ValueId leaf, unsigned depth);
  ValueId rewrittenNode(ValueId value, unsigned depth);
  ValueId nodeOf(const Polynomial& polynomial, MachineType type);

  bool isPositive(const Polynomial& polynomial);
  bool isBelow(const Polynomial& polynomial, const Polynomial& unit);

  NodeTable& nodes_;
  Values& values_;
  PointId point_;
  std::vector<Polynomial> zeros_;                         ///< not used yet, or of no use
  std::unordered_map<uint32_t, Polynomial> substitutes_;  ///< of leaves
  std::unordered_map<uint32_t, Polynomial> rewritten_;    ///< leaves under the substitutes of now
  unsigned tests_ = 0;
};

}  // namespace vortex::lang::flow
