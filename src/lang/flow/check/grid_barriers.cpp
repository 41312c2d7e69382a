#include "lang/flow/check/grid_barriers.h"

#include "lang/flow/check/block_differences.h"

namespace vortex::lang::flow {

void checkGridBarriers(const Graph& graph, const Structure& structure, diag::DiagnosticSink& sink) {
  std::vector<StepId> barriers;
  for (uint32_t s = 0; s < graph.stepCount(); ++s)
    if (isGridBarrier(graph[StepId{s}]))
      barriers.push_back(StepId{s});
  if (barriers.empty())
    return;
  const BlockDifferences differences(graph, structure);
  for (StepId barrier : barriers) {
    const BlockId cause = differences.causeOf(graph.blockOf(barrier));
    if (cause == kNoBlock)
      continue;
    auto diagnostic =
        sink.error("E0478", graph[barrier].origin->range, "`sync_grid()` is not reached by every block of the grid");
    diagnostic.primary("some blocks do not get here, or not as often");
    if (const Expr* condition = graph.terminator(cause).origin)
      diagnostic.label(condition->range, "this may differ between blocks");
    diagnostic.help(
        "move `sync_grid()` out of the conditional code; conditions on scalar arguments, extents and elements of "
        "global memory that all blocks read are the same in all blocks");
  }
}

}  // namespace vortex::lang::flow
