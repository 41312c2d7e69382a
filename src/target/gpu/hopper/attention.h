// Online softmax between two products as one phase of warpgroups: scores never leave registers.
#pragma once

#include "target/gpu/tile_lowering.h"

#include <memory>

namespace vortex::ir {
class KernelOp;
}

namespace vortex::target::gpu::hopper {

/// Whether the phase was planned so: its products have the word of a StreamConfiguration.
bool isAttention(ir::KernelOp phase);
/// Tile code of a phase whose products have the word of a StreamConfiguration; null: they have not.
std::unique_ptr<TileLowering> makeAttention(Lowering& lowering);

}  // namespace vortex::target::gpu::hopper
