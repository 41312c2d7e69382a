// Under which conditions control takes one way or another, as values that each lane has its own of.
#pragma once

#include <map>

#include "lang/flow/check/uniform.h"

namespace vortex::lang::flow {

class PathConditions {
public:
  PathConditions(Graph& graph, const Structure& structure, const Uniformity& uniformity)
      : graph_(graph), structure_(structure), uniformity_(uniformity) {}

  /// Bool values that hold where control gets to the block, of those branches around it in whose loop iteration it is; what is kNoValue among them
  /// cannot be told.
  const std::vector<ValueId>& at(BlockId block);
  /// What LaneSurroundings asks for.
  ValueId selection(ValueId phi);
  LaneSurroundings::Likeness likeness(ValueId phi) const;

private:
  ValueId reaching(BlockId from, BlockId to);
  ValueId computeReaching(BlockId from, BlockId to);
  bool isCertain(BlockId from, BlockId to);
  ValueId along(BlockId from, BlockId predecessor, BlockId to);

  Graph& graph_;
  const Structure& structure_;
  const Uniformity& uniformity_;
  std::map<std::pair<BlockId, BlockId>, ValueId> reaching_;
  std::map<std::pair<BlockId, BlockId>, bool> certain_;
  std::map<BlockId, std::vector<ValueId>> at_;
  std::map<ValueId, ValueId> selections_;
};

}  // namespace vortex::lang::flow
