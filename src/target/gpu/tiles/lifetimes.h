// How long the memory of tiles is needed.
//
// A tile that is not in memory is code that runs where it is used, so a tile is needed until the last operation that evaluates something computed
// from it: its users, the users of what they compute, and so on, but not beyond operations that are evaluated at their own place: products, stores,
// control flow whose results have memory of their own, single elements.
#pragma once

#include "ir/vx.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>

namespace vortex::target::gpu::tiles {

class TileLifetimes {
public:
  /// `phase`: control flow that every element runs by itself is marked already (kPerElement).
  explicit TileLifetimes(mlir::Operation* phase);

  /// Tiles of this operation's block that nothing evaluates after it. Tiles that the end of the block needs are not named.
  llvm::ArrayRef<mlir::Value> endingAfter(mlir::Operation* op) const;

private:
  void add(mlir::Value tile);

  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<mlir::Value, 2>> ends_;
};

}  // namespace vortex::target::gpu::tiles
