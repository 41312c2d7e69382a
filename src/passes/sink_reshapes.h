// Results in other groups of dimensions than they are computed in (heads of queries that share keys): reshapes go to the stores.
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Moves reshapes that regroup dimensions behind what is elementwise, and behind transposes that keep the regrouped dimensions together, where only
/// a store follows; other operands are regrouped instead. Such reshapes get kByPieceAttribute: who cuts the kernel must cut along their sources'
/// dimensions, into pieces with one element along those that are regrouped, or the whole innermost one.
void sinkReshapes(ir::KernelOp kernel);

/// A chain of reshapes that comes back to the extents of an earlier tile is that tile.
void dropReshapesBack(ir::KernelOp kernel);

}  // namespace vortex::passes
