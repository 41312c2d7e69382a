#pragma once

#include "lang/flow/graph/structure.h"
#include "lang/flow/solve/contexts.h"

namespace vortex::lang::flow {

/// How often loops go round at most, and which branches ask for later iterations: `if k + 2 < n` in `for k in 0..n`, or in a loop of a `var`.
/// `graph` gains values.
LoopFacts loopFacts(Graph& graph, const Structure& structure);

}  // namespace vortex::lang::flow
