#pragma once

#include "diag/diagnostic.h"
#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {

/// Loops that end only when another thread writes memory, locks taken by spinning among them: E0455.
void checkWaiting(const Graph& graph, const Structure& structure, diag::DiagnosticSink& sink);

/// A thread whose stores to global memory and atomics there are dropped may go round in the loop for ever.
bool mayNeverEndForSurplus(const Graph& graph, const Structure& structure, LoopId loop);

}  // namespace vortex::lang::flow
