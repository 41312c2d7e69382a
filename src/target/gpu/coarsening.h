// Several logical threads per hardware thread, in kernels that stream through memory.
#pragma once

#include "ir/vx.h"

namespace vortex::target::gpu {

/// How many logical threads one hardware thread executes, of a phase with `logicalThreads` per block: 1, 2, 4 or 8. More than 1 where every
/// thread runs straight through (no loop, no wait for others, no shared memory, nothing that ends it), loads few bytes, and only from what the
/// phase does not write; conditions of such a phase have become masks of its accesses, so that all loads are in flight together.
int64_t coarsen(ir::KernelOp phase, int64_t logicalThreads);

}  // namespace vortex::target::gpu
