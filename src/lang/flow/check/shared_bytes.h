#pragma once

#include <cstdint>
#include <string>

#include "diag/diagnostic.h"
#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

/// Reports shared memory over the target's limit (language.md §7; E0552, W0552), with the bytes of each tensor that is alive when it is largest.
/// Tensors of scopes that follow each other share bytes. Extents that only the launch knows count as 1: the kernel is compiled again when they are
/// known. `limit` is in bytes; `target` names it in the message. `isAdvice`: a warning, `target` is only the chip with most.
void checkSharedBytes(const Graph& graph, uint64_t limit, const std::string& target, bool isAdvice,
                      diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
