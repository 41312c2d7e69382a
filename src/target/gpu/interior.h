// Blocks away from the edges of what a kernel reads.
#pragma once

#include "ir/vxt.h"

namespace vortex::target::gpu {

/// Where the indices of a block's threads are held inside an extent (minima, maxima), blocks that none of these change take a version of the code
/// without them, and without the comparisons that then hold for the whole block. Only for kernels of loads, stores and arithmetic.
void straightenInterior(ir::vxt::KernelOp kernel);

}  // namespace vortex::target::gpu
