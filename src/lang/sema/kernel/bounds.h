#pragma once

#include "lang/sema/kernel/roots.h"
#include "lang/sema/program.h"

namespace vortex::lang {

/// Sets Expr::guard of every Element and Slice in an inlined kernel to Proven where each index is below its extent for every launch, by symbolic
/// upper bounds: loop ranges, thread ids against a constant block, remainders, and enclosing conditions `i < n` on unassigned variables.
/// Indices are usize, so only the upper bound matters (a negative index is a huge one).
void proveBounds(Function& kernel, const Roots& roots);

}  // namespace vortex::lang
