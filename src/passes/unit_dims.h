// Reshapes that add or drop dimensions of extent 1.
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Makes those of them that have other dimensions between (`[C]` → `[1, C, 1]`) several, of one dimension each: all others are before or behind it
/// then, and keep their axes.
void splitUnitReshapes(ir::KernelOp kernel);

}  // namespace vortex::passes
