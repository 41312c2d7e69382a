// Ownership and borrowing of typed programs (language.md §8).
#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/program.h"

namespace vortex::lang::flow {

/// Checks every function of a type-checked program before calls in kernels are expanded, and fills Expr::transfer. Reports E0512…E0522, E0526
/// and E0315.
void checkOwnership(Program& program, diag::DiagnosticSink& sink);

/// The same for a generic function as it is written, its parameters standing for themselves. What its callees' results may hold
/// is not known yet unless only one argument can lend, so that what is found holds for every instance; the rest is found there.
void checkDefinitionOwnership(Function& definition, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
