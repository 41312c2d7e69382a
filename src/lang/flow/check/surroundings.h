// What the values of a graph ask of it: conditions that hold at a point, counters of loops, back edges.
#pragma once

#include "lang/flow/graph/structure.h"
#include "lang/flow/value/value.h"

namespace vortex::lang::flow {

/// The conditions under which control gets to the step: of the branches on every way to it.
std::vector<Condition> conditionsAt(const Graph& graph, const Structure& structure, StepId step);

/// `nodes` are those of the graph. All arguments must outlive what is returned.
Surroundings surroundingsOf(const Graph& graph, const Structure& structure, NodeTable& nodes);

/// The extent as a value; kNoValue where it depends on what only the run of the kernel knows.
ValueId dimensionValue(const DimExpr& expr, const Function& function, NodeTable& nodes);

/// What is fixed when the kernel is launched with these numbers of threads and blocks, where they are constant. `usesOwnBlock`, `usesOwnGrid`: those that
/// the kernel itself gives, if it does, are not replaced.
struct LaunchSizes {
  std::array<std::optional<int64_t>, 3> block, grid;
  bool usesOwnBlock = false, usesOwnGrid = false;
};
LaunchFacts launchFacts(const Function& kernel, const LaunchSizes& sizes, NodeTable& nodes);

}  // namespace vortex::lang::flow
