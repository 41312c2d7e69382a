#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/program.h"

namespace vortex::lang {

/// Decides how a kernel gets its grid (language.md §5): explicit, by the extents subscripted with exactly `thread.global_id`, or whole
/// tensors when the body names no thread or block; then checks results against it. `launchedWithGrid`: some call gives
/// `.launch(grid = …)`, so the body may name blocks without an attribute.
void inferGrid(Function& kernel, const Roots& roots, bool launchedWithGrid, diag::DiagnosticSink& sink);

}  // namespace vortex::lang
