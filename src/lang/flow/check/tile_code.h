// What of a kernel with `@tile` is written for one block.
#pragma once

#include "lang/sema/program.h"

namespace vortex::lang::flow {

/// The body is written for one block: it uses the tile's offsets, positions, or memory of the block.
bool isTileCode(const KernelSpec& kernel, const Expr& expr);

/// The value has the shape of the block's tile.
bool isReturnedTile(const KernelSpec& kernel, const Expr& value);

}  // namespace vortex::lang::flow
