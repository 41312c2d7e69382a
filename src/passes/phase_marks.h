// What is left on phases, and on the operations in them, for the target that lowers them.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace vortex::passes {

/// One entry point is enough, for tensors that lie anyhow.
inline constexpr llvm::StringLiteral kAnyPlacement = "vx.any_placement";
/// Elements along all axes that blocks split, of one block at most.
inline constexpr llvm::StringLiteral kBlockElements = "vx.block_elements";
/// Of a persistent phase: how many tiles its blocks share.
inline constexpr llvm::StringLiteral kTiles = "vx.tiles";
/// On a product: the target's own word about it.
inline constexpr llvm::StringLiteral kUnit = "vx.plan";

/// On a window of an argument: the dimensions that it leaves out have extent 1 in all launches that come here.
inline constexpr llvm::StringLiteral kUnitWindow = "vx.unit";

}  // namespace vortex::passes
