// What comes before the piece of a scan that a block holds (ir/look_back.h).
#pragma once

#include "target/gpu/tiles/reduction.h"

namespace vortex::target::gpu::tiles {

/// `total`: what the block's piece combines to, the same in all threads, as the result is. Reached by all threads of the block.
Value lookBack(Lowering& l, ir::ScanOp scan, Reduction& reduction, Value total);

}  // namespace vortex::target::gpu::tiles
