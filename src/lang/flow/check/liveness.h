// Which locals that may hold borrows are used again.
#pragma once

#include "lang/flow/graph/graph.h"
#include "lang/flow/solve/bits.h"

namespace vortex::lang::flow {

class Liveness {
public:
  explicit Liveness(const Graph& graph);

  /// Something is live where a block begins. Else no dataflow problem about what locals hold needs to be solved.
  bool crossesBlocks() const { return crossesBlocks_; }

  /// For each step of the block, what is live after it.
  std::vector<Bits> afterEach(BlockId block) const;
  const Bits& atEntry(BlockId block) const { return entries_[indexOf(block)]; }
  /// The first use of the local after the step; an invalid range if it is not found.
  source::SourceRange nextUse(StepId step, LocalId local) const;

private:
  bool usesBefore(BlockId block) const;

  const Graph& graph_;
  std::vector<Bits> entries_, ends_;  ///< by block
  bool crossesBlocks_ = false;
};

}  // namespace vortex::lang::flow
