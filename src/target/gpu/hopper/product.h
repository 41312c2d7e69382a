// A product as one persistent phase: a producer warpgroup copies boxes of the operands into a ring, two consumers multiply them and finish the
// results in registers. See src/ir/vxnv_ops.td for the level it is written in.
#pragma once

#include "target/gpu/tile_lowering.h"

#include <memory>

namespace vortex::ir {
class KernelOp;
}

namespace vortex::target::gpu::hopper {

/// Whether the phase was planned as such a product: its `vx.dot` has the word of a configuration.
bool isProduct(ir::KernelOp phase);

/// Whether the phase was planned as such a product or as online softmax between two: it has tensor maps, and no other version.
bool usesBulkCopies(ir::KernelOp phase);

/// Tile code of any phase: such products here, everything else in target/gpu/tiles.
std::unique_ptr<TileLowering> makeTileLowering(Lowering& lowering);

}  // namespace vortex::target::gpu::hopper
