// What a thread beyond the elements computes: its own elements are outside of the tensors and read as 0.
//
// Constants are followed through values, choices and loops until nothing changes; a branch that the zeros decide is taken to that side only.
#pragma once

#include <set>
#include <vector>

#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

class SurplusThread {
public:
  /// `own`: the Elements that the grid has a thread for.
  SurplusThread(const Graph& graph, const std::set<const Expr*>& own);

  /// Of a number: as its type reads it.
  struct Known {
    enum class State : uint8_t { Unreached, Constant, Any } state = State::Unreached;
    __int128 integer = 0;
    double real = 0;

    bool operator==(const Known&) const = default;
    bool isZero() const { return state == State::Constant && integer == 0 && real == 0; }
  };

  Known of(ValueId value) const { return values_[indexOf(graph_.values.resolved(value))]; }
  bool reaches(BlockId block) const { return reached_[indexOf(block)]; }
  /// It may come from the predecessor of that number.
  bool comesFrom(BlockId block, size_t predecessor) const;
  /// The element of its own that the step loads; null where it loads none.
  const Expr* ownLoad(StepId step) const;
  /// What stores to any part of the thread's variable that has a place and is loaded.
  std::vector<StepId> storesOf(const Step& load) const;

private:
  bool reach(BlockId block);
  bool updateBlocks();
  bool updateValues();
  bool updateLocals();
  bool goesTo(BlockId from, size_t side) const;
  Known compute(ValueId value) const;
  Known ofOperation(ValueId value) const;
  Known ofPhi(ValueId phi) const;
  Known ofStep(ValueId value, StepId step) const;

  const Graph& graph_;
  const std::set<const Expr*>& own_;
  std::vector<Known> values_, locals_;
  std::vector<bool> reached_;
  uint32_t round_ = 1;
  std::vector<uint32_t> tried_;  ///< the round in which a block was last asked for
};

}  // namespace vortex::lang::flow
