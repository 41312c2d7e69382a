// What surplus threads of the last block give to others: their own elements are outside of the tensors and read as 0.
#pragma once

#include <set>

#include "diag/diagnostic.h"
#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

/// W0450, where such a 0, or what was computed or decided by it, enters shared memory or is exchanged, changes something there and the source does not test
/// the bound. `own`: the Elements that the grid has a thread for.
void checkSurplusReads(const Function& kernel, const Graph& graph, const std::set<const Expr*>& own,
                       diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
