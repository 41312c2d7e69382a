// Tiles on GPUs: expressions are evaluated where they are consumed, inside fused loop nests over the threads of the block (nest.h). What
// several nests need, or needs to be seen by other threads, goes to shared memory. See place.h, evaluator.h, reduction.h for the parts.
#pragma once

#include "target/gpu/lowering.h"

#include <memory>

namespace vortex::target::gpu::tiles {

std::unique_ptr<TileLowering> makeTileLowering(Lowering& lowering);

}  // namespace vortex::target::gpu::tiles
