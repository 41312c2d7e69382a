// Online softmax between two products as one phase of warpgroups: scores never leave registers.
#pragma once

#include "target/gpu/tile_lowering.h"

#include <memory>

namespace vortex::target::gpu::hopper {

/// Tile code of a phase whose products have the word of a StreamConfiguration; null: they have not.
std::unique_ptr<TileLowering> makeAttention(Lowering& lowering);

}  // namespace vortex::target::gpu::hopper
