#pragma once

#include <map>

#include "diag/diagnostic.h"
#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {

/// Follows staged tensors (language.md §9). Reports E0470, reads before `sync_block()` (E0474), of what nothing staged or wrote (E0475, W0451), and
/// touches of buffers that are still being filled (E0476). Returns `Expr::ints` of Stage, AsyncStage, SyncBlock and loops: the barriers and waits that the order
/// of copies needs. `graph` gains values.
std::map<const Expr*, std::vector<int64_t>> checkStaging(Graph& graph, const Structure& structure,
                                                         diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
