#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/analyze.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/program.h"

#include <array>

namespace vortex::lang {

/// Decides how a kernel gets its grid (language.md §5): explicit, by the extents subscripted with exactly `thread.global_id`, or whole
/// tensors when the body names no thread or block; then checks results against it. `launchGrids`: whether calls give
/// `.launch(grid = …)`, so the body may name blocks without an attribute.
void inferGrid(Function& kernel, const Roots& roots, LaunchGrids launchGrids, diag::DiagnosticSink& sink);

/// Threads of a block where neither kernel nor launch says: rows of x are whole warps, so that neighbouring threads touch neighbouring elements;
/// a short constant last extent takes a shorter row. `domain` in x, y, z order, as far as it is known.
std::array<int64_t, 3> defaultBlock(const std::vector<DimExpr>& domain);

}  // namespace vortex::lang
