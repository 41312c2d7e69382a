#pragma once

#include <set>

#include "diag/diagnostic.h"
#include "lang/flow/graph/graph.h"
#include "lang/sema/analyze.h"

namespace vortex::lang::flow {

/// Decides how a kernel gets its grid (language.md §5): explicit, by the extents subscripted with exactly `thread.global_id`, or whole
/// tensors when the body names no thread or block; then checks results against it. `launchGrids`: whether calls give
/// `.launch(grid = …)`, so the body may name blocks without an attribute. `graph`: the kernel's.
/// Gives back the Elements that are subscripted so: the grid has a thread for each.
std::set<const Expr*> inferGrid(Function& kernel, const Graph& graph, LaunchGrids launchGrids,
                                diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
