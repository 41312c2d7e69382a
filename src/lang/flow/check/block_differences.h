// Which values and points differ between the blocks of a grid, as check/uniform says of the threads of a block. A value differs as its operands do, a
// phi also where blocks come by different edges, a point as the conditions it depends on. What lies in global memory is one value for all blocks that
// read one element between two barriers of the grid, or the read is a race; what a block keeps in its own memory and what atomic operations give is not.
#pragma once

#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {

class BlockDifferences {
public:
  BlockDifferences(const Graph& graph, const Structure& structure);

  bool isDifferent(ValueId value) const { return value != kNoValue && values_[indexOf(graph_.values.resolved(value))]; }
  /// The branch by which some blocks do not get there, or not as often; kNoBlock: all do.
  BlockId causeOf(BlockId block) const;

private:
  BlockId causeIn(BlockId block) const;
  bool ofValue(ValueId value) const;
  bool ofPhi(ValueId phi) const;
  bool ofStep(StepId id) const;
  bool ofPlace(PlaceId id) const;

  const Graph& graph_;
  const Structure& structure_;
  std::vector<bool> values_, blocks_, locals_;
};

}  // namespace vortex::lang::flow
