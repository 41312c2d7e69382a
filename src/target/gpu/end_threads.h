// Failed asserts for targets whose barriers wait for every thread of the block, those that ended included.
#pragma once

#include "ir/vxt.h"

namespace vortex::target::gpu {

/// In kernels with barriers or warp operations a failed assert no longer ends its thread: the thread is marked, makes no further access to memory,
/// leaves loops of unknown length, and still reaches every barrier. Its values mean nothing from there on. Other kernels stay as they are.
void endThreads(ir::vxt::KernelOp kernel);

/// Whether the thread goes on after this assert fails.
bool goesOn(ir::vxt::AssertOp check);

}  // namespace vortex::target::gpu
