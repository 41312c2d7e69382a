// Who agrees on a value and who gets to a point together: the block, each warp, or nobody.
//
// A value varies as its operands do; a phi also where threads come by different edges (behind a branch that varies, and behind a loop that threads
// leave in different iterations). A point varies as the conditions it depends on do. What memory holds is one value for the block only if the block
// reads it together. Both grow from Block until nothing changes.
#pragma once

#include "lang/flow/graph/structure.h"
#include "lang/flow/race/launches.h"

namespace vortex::lang::flow {

class Uniformity {
public:
  /// `shape`: the block, as far as it is known: thread.id.y of blocks [32, n] is one value for each warp.
  Uniformity(const Graph& graph, const Structure& structure, const BlockShape& shape);

  Level ofValue(ValueId value) const {
    const ValueId resolved = graph_.values.resolved(value);
    return indexOf(resolved) < valueLevels_.size() ? valueLevels_[indexOf(resolved)] : levelOf(resolved);
  }
  /// Of getting there.
  Level ofBlock(BlockId block) const { return blockLevels_[indexOf(block)]; }
  /// Of the step: getting there and all operands, subscripts of its places included.
  Level ofStep(StepId step) const;

private:
  void findJoins();
  bool updateBlocks();
  bool updateValues();
  Level levelOf(ValueId value) const;
  Level levelOfPhi(ValueId phi) const;
  Level levelOfDefinition(StepId step) const;
  Level ofPlace(PlaceId place) const;
  Level ofPosition(const Node& node) const;

  const Graph& graph_;
  const Structure& structure_;
  BlockShape shape_;
  std::vector<Level> valueLevels_, blockLevels_;
  /// By block: the branches whose sides meet there, each in a phi's operands.
  std::vector<std::vector<BlockId>> joined_;
};

}  // namespace vortex::lang::flow
