// Loops that carry values for their condition only.
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Makes every `scf.while` of the kernel pass all it carries on to its body, in order, where its condition passes on some of that. Simplification
/// drops what only the condition reads (`while delta > eps`), and a loop of the launch keeps a place for every carried value.
void passOnWhatIsCarried(ir::KernelOp kernel);

}  // namespace vortex::passes
