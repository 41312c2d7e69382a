// Ownership and borrowing of typed programs (language.md §8).
#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/program.h"

namespace vortex::lang {

/// Checks every function of a type-checked program before calls in kernels are expanded, and fills Expr::transfer and
/// Variable::isView. Reports E0512…E0524.
void checkOwnership(Program& program, diag::DiagnosticSink& sink);

}  // namespace vortex::lang
