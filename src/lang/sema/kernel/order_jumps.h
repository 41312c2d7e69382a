#pragma once

#include "lang/sema/program.h"

namespace vortex::lang {

/// Jumps inside of expressions, `out[i] = if c { return } else { x }`: what is evaluated up to the last one becomes statements in front of what needs it,
/// in the order of evaluation, so that code behind jumps is guarded in one way. After the expansion of calls. Trees without such jumps stay as they are.
void orderJumps(Program& program, Function& function);

}  // namespace vortex::lang
