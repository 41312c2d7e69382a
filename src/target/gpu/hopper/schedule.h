#pragma once

#include "chip/chip.h"
#include "passes/plan/rules.h"

namespace vortex::target::gpu::hopper {

/// Adds the persistent products of chips that have the units for them; nothing on others.
void addBulkTiles(passes::TensorSchedule& schedule, const chip::Gpu& chip);

}  // namespace vortex::target::gpu::hopper
