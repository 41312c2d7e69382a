// Which loops of a whole-tensor kernel run as grids of threads, and warnings about those that one thread runs.
#pragma once

#include <set>

#include "diag/diagnostic.h"
#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {

/// The loops whose iterations do not meet. Reports W0627 for loops that stay in one thread: those marked `@parallel` that have to, and those of
/// unknown or many iterations that are not marked `@sequential`. What `@parallel` says and nothing proves is noted for the build report. `graph`
/// gains values.
std::set<const Expr*> checkLoops(Function& kernel, Graph& graph, const Structure& structure,
                                 diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
