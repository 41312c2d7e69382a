// Threads that load what their neighbours load.
#pragma once

#include "ir/vx.h"

namespace vortex::target::gpu {

/// Where each thread loads elements that threads of the rows beside it load, too (filters, stencils), one thread becomes several: the phase has blocks
/// of fewer rows afterwards, whose threads run straight through, short loops written out, and load every element once. Only for threads without
/// results that wait for nobody, end nowhere early and load from what the phase does not write.
void joinNeighbours(ir::KernelOp phase);

}  // namespace vortex::target::gpu
