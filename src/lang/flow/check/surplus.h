// Stores that surplus threads would do: what they would write inside of a tensor is lost.
#pragma once

#include "diag/diagnostic.h"
#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {

/// The last block along the axis may have more threads than elements. Of a kernel whose grid follows from extents.
bool mayHaveSurplus(const KernelSpec& spec, uint32_t axis);

/// W0452, of kernels whose grid follows from extents.
void checkSurplus(Graph& graph, const Structure& structure, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
