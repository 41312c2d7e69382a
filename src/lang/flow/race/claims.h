// Loops that the program calls `@parallel` though their iterations meet.
#pragma once

#include "diag/diagnostic.h"
#include "lang/flow/graph/structure.h"
#include "lang/flow/race/policy.h"

namespace vortex::lang::flow {

/// E0627, one for each loop of a whole-tensor kernel of which two iterations touch one element in some small launch and one of them writes it. Loops
/// that run in order all the same are left to check/one_thread. `graph` gains values.
void checkClaims(Graph& graph, const Structure& structure, RacePolicy policy, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
