// How far loops over ranges count.
#pragma once

#include <map>

#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {

/// Of every `for` over a range, in all launches. `graph` gains values.
std::map<const Expr*, lang::Reach> loopReaches(Graph& graph, const Structure& structure);

}  // namespace vortex::lang::flow
