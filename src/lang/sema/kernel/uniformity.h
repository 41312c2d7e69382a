#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/program.h"

#include <array>
#include <optional>
#include <span>

namespace vortex::lang {

/// Threads of a block per axis; nothing where only the launch knows.
using ThreadsPerAxis = std::array<std::optional<int64_t>, 3>;

/// Fills Variable::uniformity and Expr::{uniformity, needsBlock, hasPerThread} of an inlined kernel by a fixpoint over data and control
/// dependence, and reports barriers, warp operations and block-level operations under control that differs between threads or lanes.
///
/// Three levels: uniform over the block < uniform over each warp < lane-varying. A variable has the highest level of any value
/// assigned to it and of the control of any assignment. `blocks`: every shape the kernel may be launched with, none if that is not known.
void inferUniformity(Function& kernel, const Roots& roots, std::span<const ThreadsPerAxis> blocks,
                     diag::DiagnosticSink& sink);

}  // namespace vortex::lang
