// Warnings about accesses of global memory that use little of what they move, `@verify_no_bank_conflicts`, and notes on bank conflicts for the
// build report (language.md §11).
#pragma once

#include "diag/diagnostic.h"
#include "lang/flow/check/uniform.h"
#include "lang/flow/launch_shapes.h"

namespace vortex::lang::flow {

/// For every block with which the kernel may be launched. `graph`, that of the kernel, gains values.
void checkAccesses(Function& kernel, Graph& graph, const Structure& structure, const Uniformity& uniformity,
                   const LaunchShapes& shapes, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
