// A test of the thread's position around parts of a kernel whose grid follows from extents.
#pragma once

#include <set>

#include "lang/sema/program.h"

namespace vortex::lang {

/// Threads beyond the elements leave out the expressions of `around`, whose values are zeros then: of numbers, and of tuples, arrays, structs and enums of
/// them. What a call is given is still computed by all threads. `tested` gains the expressions that stand under a test.
void testBound(Program& program, Function& kernel, const std::set<const Expr*>& around, std::set<const Expr*>& tested);

}  // namespace vortex::lang
