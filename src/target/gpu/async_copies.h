// Asynchronous copies as loads and stores, for targets that have none.
#pragma once

#include "ir/vxt.h"

namespace vortex::target::gpu {

/// Every copy happens where it is issued, which lies between its issue and its wait; commits and waits vanish.
void expandAsyncCopies(ir::vxt::KernelOp kernel);

}  // namespace vortex::target::gpu
