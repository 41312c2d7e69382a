#pragma once

#include "diag/diagnostic.h"
#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {

/// Barriers of the grid that some blocks may not reach, or not as often as others: E0478.
void checkGridBarriers(const Graph& graph, const Structure& structure, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
