#pragma once

#include "lang/sema/kernel/roots.h"
#include "lang/sema/program.h"

namespace vortex::lang {

/// Sets Expr::guard of every Element and Slice in an inlined kernel to Proven where each index, as the machine computes it, is below its extent for
/// every launch: by types, loop ranges, thread ids against a constant block, remainders, and enclosing conditions `i < n` on unassigned variables.
void proveBounds(Function& kernel, const Roots& roots);

}  // namespace vortex::lang
