// Shared memory by which threads of a block tell each other numbers: written before a barrier, read behind it.
#pragma once

#include <map>
#include <vector>

#include "lang/flow/check/uniform.h"
#include "lang/flow/race/intervals.h"

namespace vortex::lang::flow {

class Cells {
public:
  Cells(Graph& graph, const Structure& structure, const Uniformity& uniformity, const BlockShape& shape,
        const std::vector<AccessInterval>& intervals)
      : graph_(graph), structure_(structure), uniformity_(uniformity), shape_(shape), intervals_(intervals) {}

  /// A load of shared memory, and no thread writes there between the barriers around it: whoever reads an element then reads the same.
  bool isSteady(StepId load) const;

  struct Source {
    StepId store = kNoStep;
    bool isBefore = false;  ///< in every iteration, whatever is around both, with a barrier between
  };
  /// All stores to what is read, each of one thread, to the same element. None: something else may be read, perhaps what no thread has written.
  std::vector<Source> sourcesOf(StepId load) const;

private:
  bool mayWrite(const Access& access, LocalId root) const;
  BlockId choiceOf(StepId store) const;
  bool isOneThread(ValueId condition) const;

  Graph& graph_;
  const Structure& structure_;
  const Uniformity& uniformity_;
  const BlockShape& shape_;
  const std::vector<AccessInterval>& intervals_;
  mutable std::map<StepId, bool> steady_;
};

}  // namespace vortex::lang::flow
