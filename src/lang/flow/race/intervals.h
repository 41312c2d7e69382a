// Which accesses of a block no barrier orders. From the entry and from every barrier, an interval holds what is reached without crossing a barrier. All
// threads leave the barrier in the same iteration of the loops around it, so what an interval holds knows how its iteration follows from the barrier's.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {

/// How a step is reached from the start of its interval.
struct Reach {
  LoopId passed = kNoLoop;  ///< the outermost loop around the start whose next iteration this is
  bool isRepeated = false;  ///< it was passed more than once, so how often is not known
  /// Loops around the step that were entered after the start and may be in a later iteration than their first.
  std::vector<LoopId> later;
  /// Where a branch led: one around a barrier, one by which a loop with a barrier had no iteration, or no more than that of the start.
  struct Side {
    BlockId branch{0};
    bool holds = true;
    bool isOfStart = false;   ///< as seen from the start, whatever the step's iteration is
    LoopId passed = kNoLoop;  ///< isOfStart: of the reach there
    auto operator<=>(const Side&) const = default;
  };
  std::vector<Side> sides;
  auto operator<=>(const Reach&) const = default;
};

/// The steps with accesses of one interval.
struct AccessInterval {
  StepId start = kNoStep;  ///< the barrier; kNoStep: the entry of the kernel
  BlockId block{0};        ///< of the start
  std::vector<std::pair<StepId, Reach>> steps;
};

/// Which barriers end an interval and start one.
enum class BarrierKind : uint8_t { OfBlocks, OfBlocksAndWarps, OfGrids };

/// `certainlyRuns`: a loop is never left before its first iteration.
std::vector<AccessInterval> findIntervals(const Graph& graph, const Structure& structure, BarrierKind barriers,
                                          const std::function<bool(LoopId)>& certainlyRuns);
/// What is reached from behind a step, as from a barrier, without crossing one.
AccessInterval intervalBehind(const Graph& graph, const Structure& structure, StepId step, BarrierKind barriers,
                              const std::function<bool(LoopId)>& certainlyRuns);

}  // namespace vortex::lang::flow
