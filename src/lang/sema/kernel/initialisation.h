#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/kernel/roots.h"
#include "lang/sema/program.h"

namespace vortex::lang {

/// Shared and local tensors that are read before anything wrote them: E0525 when this is certain, W0525 when it depends on a
/// condition that all threads decide alike. Needs uniformity. Staged tensors are checkStaging's.
void checkInitialisation(const Function& kernel, const Roots& roots, diag::DiagnosticSink& sink);

}  // namespace vortex::lang
