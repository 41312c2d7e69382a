#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/program.h"

namespace vortex::lang {

/// Follows staged tensors through an inlined kernel (language.md §9): reports reads before `sync_block()`, of what nothing staged or
/// wrote, and touches of buffers still being filled; and fills `ints` of Stage, AsyncStage and SyncBlock with the barriers and waits the
/// order of copies needs. A loop with `ints` closes the group of copies started before it.
///
/// Loops are executed abstractly for every trip count up to a small limit, so that `s % 2` and `k + step < K` have their values; an index
/// that cannot be evaluated stands for every tensor of its array.
void checkStaging(Function& kernel, const Roots& roots, diag::DiagnosticSink& sink);

}  // namespace vortex::lang
