#pragma once

#include "diag/diagnostic.h"
#include "lang/flow/check/uniform.h"

namespace vortex::lang::flow {

/// Shared and local tensors that are read before anything has written them: E0525 where every way to the read is without a write, or the
/// first iteration is; W0525 where some way is. Tensors are whole: a write of one element is a write.
void checkInitialised(Graph& graph, const Structure& structure, const Uniformity& uniformity,
                      diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
