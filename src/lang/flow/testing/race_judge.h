// Judges what is told of the races of a kernel by running it: the thread machine knows which accesses of one element no barrier orders. What is proven free
// never meets, in no launch; what a witness says meets in that launch.
#pragma once

#include "lang/flow/race/races.h"
#include "lang/flow/testing/thread_machine.h"

namespace vortex::lang::flow::testing {

struct RaceTally {
  size_t pairs = 0, undecided = 0, witnesses = 0, tickets = 0;
};

/// Of a kernel with this block and grid.
struct RaceLaunch {
  int64_t extent = 0;                                    ///< of every name of a dimension
  std::vector<std::pair<std::string, int64_t>> scalars;  ///< parameters by name
};

/// What is wrong; empty: nothing. Tensors begin with zeros, but for a parameter `c` of counters, which are small or come round soon, and `d` of numbers
/// below 3 that follow from the scalars.
std::string judgeRaces(Graph& graph, const LaunchShapes& shapes, const std::vector<RaceLaunch>& launches,
                       RaceTally& tally);

}  // namespace vortex::lang::flow::testing
