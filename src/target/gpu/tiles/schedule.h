#pragma once

#include "chip/chip.h"
#include "passes/schedule_tensors.h"

#include <mlir/IR/BuiltinOps.h>

namespace vortex::target::gpu::tiles {

/// Sizes of whole-tensor work for a GPU: many small blocks, fused only as far as a block's registers reach.
/// `module`: before the schedule; block tiles of its products are chosen for it.
passes::TensorSchedule tensorSchedule(const chip::Gpu& chip, mlir::ModuleOp module = {});

}  // namespace vortex::target::gpu::tiles
