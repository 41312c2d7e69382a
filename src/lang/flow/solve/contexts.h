// How often the blocks of a graph are visited by a dataflow problem, and what that tells about values. In loops that are followed the first
// `prologue` iterations are visited one by one and the later ones apart by their number modulo `modulus`, so that `if k == 0` and `k % 2`
// are decided. Followed are loops whose counter is exact (it never wraps), or some variable that goes round a few numbers, and is tested inside or chooses one of
// an array; two of them nested at most. The iterations start anew whenever a loop is entered, and behind it they are one. Where branches ask for later iterations
// (`if k + 2 < n`), visits are also told apart by how many are left: a branch that says there is none and another iteration exclude one another.
#pragma once

#include <optional>
#include <unordered_map>

#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

/// One of the visits of a block; 0 … Contexts::count - 1.
enum class Context : uint32_t {};

/// What is known of an integer: its bounds, and what it is modulo something. `low == high`: the number.
struct Known {
  __int128 low = 0, high = 0;
  __int128 modulus = 1, residue = 0;
  std::optional<__int128> number() const { return low == high ? std::optional(low) : std::nullopt; }
};

/// What values tell of loops.
struct LoopFacts {
  std::unordered_map<uint32_t, __int128> mostTrips;  ///< by loop
  /// The branch asks whether the loop has an iteration so many after this one; if so, its condition is `holds`.
  struct Ahead {
    LoopId loop = kNoLoop;
    uint32_t distance = 0;
    bool holds = true;
  };
  std::unordered_map<uint32_t, Ahead> ahead;  ///< by the block that ends with the branch
};

class Contexts {
public:
  /// Every block once.
  static Contexts plain(const Graph& graph) { return Contexts(graph, 0, 1, false, {}); }
  /// The first iteration apart.
  static Contexts peel(const Graph& graph) { return Contexts(graph, 1, 1, true, {}); }
  /// Iterations modulo the number of buffers, after `prologue` ones.
  static Contexts ring(const Graph& graph, uint32_t buffers, uint32_t prologue = 1, LoopFacts facts = {}) {
    return Contexts(graph, prologue, buffers, true, std::move(facts));
  }

  uint32_t count(BlockId block) const { return counts_[indexOf(block)]; }
  /// The visits that an edge leads to; none if the condition of the branch is decided against it.
  std::vector<Context> follow(BlockId from, Context context, uint32_t successor) const;
  Known known(ValueId value, BlockId at, Context context) const;
  bool isFollowed(LoopId loop) const { return !carried_[indexOf(loop)].empty(); }
  /// The class of a followed loop around the block: below `prologue` the iteration's number, else prologue + number modulo `modulus`.
  uint32_t iteration(LoopId loop, BlockId at, Context context) const;
  uint32_t prologue() const { return prologue_; }
  uint32_t modulus() const { return modulus_; }

private:
  /// What the loop's header carries from one iteration to the next: begin + step·k in iteration k, for all k, or one of a few numbers.
  struct Carried {
    ValueId phi = kNoValue, begin = kNoValue;
    __int128 step = 1;
    std::vector<__int128> numbers =
        {};  ///< of iterations 0 … prologue + modulus - 1, of which the last `modulus` repeat
  };
  /// Which visit of a loop: its class, and how many iterations are left, this one included (`lefts` - 1: or more).
  struct Visit {
    LoopId loop;
    uint32_t number, left;
  };
  struct Asked {
    BlockId at;
    Context context;
    std::unordered_map<uint32_t, Known> found;
  };
  Contexts(const Graph& graph, uint32_t prologue, uint32_t modulus, bool follows, LoopFacts facts);
  std::vector<Carried> carriedBy(const Loop& loop) const;
  std::optional<Carried> counterOf(const Loop& loop) const;
  std::optional<Carried> exactPhi(const Loop& loop, ValueId phi) const;
  std::optional<Carried> repeatedPhi(ValueId phi) const;
  bool isUsed(LoopId loop, ValueId phi) const;
  uint32_t classes() const { return prologue_ + modulus_; }
  uint32_t nextClass(uint32_t number) const;
  std::vector<Visit> visitsOf(BlockId block, Context context) const;
  bool isClosed(BlockId from, Context context, const std::vector<Visit>& visits, uint32_t successor) const;
  std::vector<uint32_t> leftsOf(LoopId loop, const Visit* before, bool isAgain) const;
  std::optional<Known> carriedValue(ValueId phi, const Asked& asked) const;
  std::optional<bool> againstBegin(const Node& node, const Asked& asked) const;
  const Carried* find(ValueId phi, const Asked& asked, LoopId& loop) const;
  Known ask(ValueId value, Asked& asked) const;
  Known compute(ValueId value, Asked& asked) const;

  const Graph& graph_;
  uint32_t prologue_, modulus_;
  LoopFacts facts_;
  std::vector<std::vector<Carried>> carried_;  ///< by loop
  std::vector<uint32_t> lefts_;                ///< by loop: numbers of iterations left that are told apart; 1: none
  std::vector<std::vector<LoopId>> followed_;  ///< by block: the followed loops around it, outermost first
  std::vector<uint32_t> counts_;               ///< by block
  std::unordered_map<uint32_t, LoopId> loopOfPhi_;  ///< by value
};

}  // namespace vortex::lang::flow
