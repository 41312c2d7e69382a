// Reasons why two accesses of a pair never meet, tried in this order. Each is a proof for every launch.
#pragma once

#include <string_view>

#include "lang/flow/race/suppositions.h"
#include "lang/flow/race/tickets.h"

namespace vortex::lang::flow {

enum class Decider : uint8_t {
  None,         ///< not decided
  Field,        ///< different fields or parts
  Control,      ///< the conditions of both sides contradict each other
  Form,         ///< a subscript differs whatever the threads are
  Digits,       ///< a subscript differs in every order of the threads' positions
  Enumeration,  ///< a subscript differs for all threads of the block and all values of everything else
  Tickets,      ///< subscripts are results of atomic additions that start disjoint ranges
  Launch,  ///< as Form or Digits, in launches of sizes that fit the integers which the kernel counts in: others are refused
  Atomic,   ///< both are atomic, of a scope that covers both threads
  Witness,  ///< they do meet
};
std::string_view name(Decider decider);

/// What all questions about one kernel may take together. Counts, not times: a verdict never depends on the machine.
struct DecisionBudget {
  uint64_t proofSteps = 120'000;
  unsigned cases = 1200;  ///< of how positions are ordered
  uint64_t tableEntries = 1u << 21;
};
struct Decision {
  Decider decider = Decider::None;
  LocalId counter = kNoLocal;            ///< Tickets: what they are counted in
  std::vector<LaunchLimit> limits = {};  ///< Launch
};

/// What is known of values under the conditions of pairs: many have the same, and their threads are ordered in the same ways.
class Knowledge {
public:
  Values& of(Pair& pair, const LaunchFacts& launch);

private:
  std::map<std::vector<__int128>, std::unique_ptr<Values>> values_;  ///< by what is known everywhere
};
Decision decide(Pair& pair, Tickets& tickets, Knowledge& knowledge, const BlockShape& shape, DecisionBudget& budget);

/// enumeration.cpp. False: not proven.
bool differInEveryCase(Pair& pair, const BlockShape& shape, uint64_t& budget);

}  // namespace vortex::lang::flow
