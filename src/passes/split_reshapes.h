#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Reshapes whose dimensions correspond in several groups, [A, H, 2, W, 2] to [A, 2 * H, 2 * W], become a chain of reshapes of one group each. Of such a
/// chain every dimension but those of one group is known to be the same, so that an element is found without a division by the extents behind it, and
/// blocks can be cut along the others. Quotients count as exact where the equality of the numbers of elements needs them to be: launches check that.
void splitReshapes(ir::KernelOp kernel);

}  // namespace vortex::passes
