// Loops whose iterations do not meet, so that they may run in any order or at once.
#pragma once

#include <set>

#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {

/// Loops over a range by steps of 1: no iteration leaves anything to another or leaves the loop early, and each tensor that is stored to has a
/// dimension that every access to it in the loop subscripts by the loop's variable. `graph` gains values.
std::set<const Expr*> independentLoops(Graph& graph, const Structure& structure);

}  // namespace vortex::lang::flow
