#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/program.h"

namespace vortex::lang {

/// Fills Variable::uniformity and Expr::{uniformity, needsBlock, hasPerThread} of an inlined kernel by a fixpoint over data and control
/// dependence, and reports barriers, warp operations and block-level operations under control that differs between threads or lanes.
///
/// Three levels: uniform over the block < uniform over each warp < lane-varying. A variable has the highest level of any value
/// assigned to it and of the control of any assignment.
void inferUniformity(Function& kernel, const Roots& roots, diag::DiagnosticSink& sink);

}  // namespace vortex::lang
