#pragma once

#include "chip/chip.h"
#include "passes/schedule_tensors.h"

namespace vortex::target::gpu::tiles {

/// Sizes of whole-tensor work for a GPU: many small blocks, fused only as far as a block's registers reach.
passes::TensorSchedule tensorSchedule(const chip::Gpu& chip);

}  // namespace vortex::target::gpu::tiles
