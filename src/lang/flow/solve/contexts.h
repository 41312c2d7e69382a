// How often the blocks of a graph are visited by a dataflow problem, and what that tells about values. In loops that are followed the first
// `prologue` iterations are visited one by one and the later ones apart by their number modulo `modulus`, so that `if k == 0` and `k % 2`
// are decided. Followed are loops whose counter is exact (it never wraps) and is tested inside or chooses one of an array; two of them nested
// at most. The iterations start anew whenever a loop is entered, and behind it they are one.
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

class Contexts {
public:
  /// Every block once.
  static Contexts plain(const Graph& graph) { return Contexts(graph, 0, 1, false); }
  /// The first iteration apart.
  static Contexts peel(const Graph& graph) { return Contexts(graph, 1, 1, true); }
  /// Iterations modulo the number of buffers, after `prologue` ones.
  static Contexts ring(const Graph& graph, uint32_t buffers, uint32_t prologue = 1) {
    return Contexts(graph, prologue, buffers, true);
  }

  uint32_t count(BlockId block) const { return counts_[indexOf(block)]; }
  /// The visit that an edge leads to; nothing if the condition of the branch is decided against it.
  std::optional<Context> follow(BlockId from, Context context, uint32_t successor) const;
  Known known(ValueId value, BlockId at, Context context) const;
  bool isFollowed(LoopId loop) const { return counters_[indexOf(loop)].has_value(); }
  /// The class of a followed loop around the block: below `prologue` the iteration's number, else prologue + number modulo `modulus`.
  uint32_t iteration(LoopId loop, BlockId at, Context context) const;
  uint32_t prologue() const { return prologue_; }
  uint32_t modulus() const { return modulus_; }

private:
  /// phi = begin + step·k in iteration k, for all k.
  struct Exact {
    ValueId phi = kNoValue, begin = kNoValue;
    __int128 step = 1;
    std::optional<__int128> trips;
  };
  struct Asked {
    BlockId at;
    Context context;
    std::unordered_map<uint32_t, Known> found;
  };
  Contexts(const Graph& graph, uint32_t prologue, uint32_t modulus, bool follows);
  std::optional<Exact> exactCounter(const Loop& loop) const;
  std::optional<Exact> exactPhi(const Loop& loop, ValueId phi) const;
  bool isUsed(LoopId loop, ValueId phi) const;
  uint32_t classes() const { return prologue_ + modulus_; }
  uint32_t nextClass(uint32_t number) const;
  Context contextIn(BlockId block, const std::vector<std::pair<LoopId, uint32_t>>& classes) const;
  std::optional<Known> counterValue(ValueId phi, const Asked& asked) const;
  std::optional<bool> againstBegin(const Node& node, const Asked& asked) const;
  Known ask(ValueId value, Asked& asked) const;
  Known compute(ValueId value, Asked& asked) const;

  const Graph& graph_;
  uint32_t prologue_, modulus_;
  std::vector<std::optional<Exact>> counters_;      ///< by loop
  std::vector<std::vector<LoopId>> followed_;       ///< by block: the followed loops around it, outermost first
  std::vector<uint32_t> counts_;                    ///< by block
  std::unordered_map<uint32_t, LoopId> loopOfPhi_;  ///< by value
};

}  // namespace vortex::lang::flow
