#pragma once

#include "ir/vxt.h"

namespace vortex::target::metal {

/// Arithmetic, ids and addresses that equal earlier ones are those. Every access computes its indices anew, which machine code of other targets
/// loses in their compilers; here it would be printed, and parsed before the first launch.
void reuseArithmetic(ir::vxt::KernelOp kernel);

}  // namespace vortex::target::metal
