// Indices of borrowed places, compared as machine integers.
#pragma once

#include <memory>
#include <unordered_map>

#include "lang/flow/graph/structure.h"
#include "lang/flow/value/value.h"

namespace vortex::lang::flow {

class Apart {
public:
  /// Adds conditions to the graph's values.
  explicit Apart(Graph& graph) : graph_(graph) {}

  /// Can the access that the step makes touch an element that `lent` names? Both are a Slot, At or Window of one tensor, Vec or array, and
  /// `lent` is fixed. `slots`: of so many tensors the last one is meant by all indices from there on; 0: an index outside fails. True when it is not known.
  bool mayOverlap(const Projection& access, StepId step, const Projection& lent, uint64_t slots);
  /// While the local holds what was lent, the indices have the values they had then: it does not outlive an iteration of a loop that
  /// gives them new ones.
  bool isFixed(const Projection& lent, LocalId holder) const;

private:
  struct Extent {
    ValueId begin, end;  ///< begin <= index < end
    bool isIndex = false;
  };
  std::vector<Extent> extentsOf(const Projection& projection, uint64_t slots);
  void prepare();

  Graph& graph_;
  std::unique_ptr<Structure> structure_;
  std::unique_ptr<Values> values_;
  std::vector<Condition> always_;  ///< what the launch has checked
};

}  // namespace vortex::lang::flow
