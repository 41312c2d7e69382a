// Loops that surplus threads might never leave: what they store is dropped, the numbers that they draw are 0, and so are their own elements.
#pragma once

#include <set>

#include "diag/diagnostic.h"
#include "lang/flow/check/uniform.h"

namespace vortex::lang::flow {

/// Puts a test of the thread's position around them, in kernels whose grid follows from extents; E0455 where none can stand. True: the kernel is another,
/// and its graph is to be made anew and asked again: what follows a loop that has none yet is not reached. `own`: the Elements that the grid has a thread
/// for. `tested`: what stands under such a test.
bool keepSurplusOut(Program& program, Function& kernel, const std::set<const Expr*>& own, const Graph& graph,
                    const Structure& structure, const Uniformity& uniformity, std::set<const Expr*>& tested,
                    diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
