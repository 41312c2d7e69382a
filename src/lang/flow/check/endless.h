// Loops that nothing they do can end.
#pragma once

#include "diag/diagnostic.h"
#include "lang/sema/program.h"

namespace vortex::lang::flow {

/// E0455 for a `while` whose condition is made of numbers that the loop leaves as they are or is always true, and in kernels for a `loop`, unless a `break`, `return` or `assert` in it
/// may end it. Functions are looked at as they are written, each once.
void checkEndless(const Program& program, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
