// Who agrees on a value and who gets to a point together: the block, each warp, or nobody.
//
// A value varies as its operands do; a phi also where threads come by different edges (behind a branch that varies, and behind a loop that threads
// leave in different iterations). A point varies as the conditions it depends on do. What memory holds is one value for the block only if nothing
// writes it or the block reads it together. Both grow from Block until nothing changes.
#pragma once

#include <unordered_map>

#include "lang/flow/graph/structure.h"
#include "lang/flow/race/launches.h"
#include "lang/flow/value/lanes.h"

namespace vortex::lang::flow {

class Uniformity {
public:
  /// `shapes`: every block that the kernel may be launched with, as far as it is known; none: any.
  Uniformity(Graph& graph, const Structure& structure, std::span<const BlockShape> shapes);

  Level ofValue(ValueId value) const {
    const ValueId resolved = graph_.values.resolved(value);
    return indexOf(resolved) < valueLevels_.size() ? valueLevels_[indexOf(resolved)] : levelOf(resolved);
  }
  /// Of getting there.
  Level ofBlock(BlockId block) const { return blockLevels_[indexOf(block)]; }
  /// Of the condition at the block's end, if there is one.
  Level ofBranch(BlockId block) const {
    const ValueId condition = graph_.terminator(block).value;
    return condition == kNoValue ? Level::Block : std::max(branchLevels_[indexOf(block)], ofValue(condition));
  }
  /// Of the step: getting there and all operands, subscripts of its places included.
  Level ofStep(StepId step) const;
  /// Of what a variable that is kept in a place holds.
  Level ofLocal(LocalId local) const { return localLevels_[indexOf(local)]; }

  /// The condition at the block's end is kept where it differs at least so much; `settle` draws the conclusions.
  void raise(BlockId branch, Level level);
  void settle();

private:
  void findWrites();
  void findJoins();
  bool updateBlocks();
  bool updateLocals();
  bool updateValues();
  Level levelOf(ValueId value) const;
  Level levelOfOperation(ValueId value) const;
  Level levelOfPhi(ValueId phi) const;
  Level levelOfDefinition(StepId step) const;
  Level ofPlace(PlaceId place) const;
  Level ofMemory(PlaceId place, BlockId at) const;
  Level ofPosition(const Node& node) const;
  static Level ofPosition(const Node& node, const BlockShape& shape);
  bool isOneInWarp(ValueId value) const;
  bool everyWarpHas(ValueId lane) const;

  Graph& graph_;
  const Structure& structure_;
  std::vector<BlockShape> shapes_;
  std::vector<Level> valueLevels_, blockLevels_, branchLevels_, localLevels_;
  std::vector<bool> isAssigned_, isWritten_;  ///< by local: it as a variable, memory of which it is the root
  /// By block: the branches whose sides meet there, each in a phi's operands.
  std::vector<std::vector<BlockId>> joined_;
  std::unique_ptr<Values> values_;         ///< where something asks for warps
  mutable std::vector<LaneValues> lanes_;  ///< by shape
  mutable std::unordered_map<uint32_t, bool> oneInWarp_;
};

}  // namespace vortex::lang::flow
