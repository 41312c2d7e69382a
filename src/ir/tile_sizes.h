// Extents of tiles, found on their producers: no op asks a tile for its size at run time.
#pragma once

#include "ir/vx.h"
#include "mlir/IR/OpDefinition.h"

#include "llvm/ADT/DenseMap.h"

namespace vortex::ir {

/// The extents of `tile` (a ranked tensor): an index attribute where static, else an existing index value, found by walking to the
/// producers. Values of loops and branches must not change extents from one iteration or branch to another; the extent then comes
/// from outside the loop. An entry is null where no existing value dominates the tile's users: only for thread results of a block
/// with several non-constant dimensions, and for branch results with an extent computed inside the branch.
llvm::SmallVector<mlir::OpFoldResult> tileSizes(mlir::Value tile);

/// The same for many tiles of code that does not change in between: each is looked up once.
class TileSizes {
public:
  llvm::SmallVector<mlir::OpFoldResult> of(mlir::Value tile);

private:
  using Sizes = llvm::SmallVector<mlir::OpFoldResult>;

  void fillFromTileOp(Sizes& sizes, mlir::Operation* op);
  void fillFromControl(Sizes& sizes, mlir::Operation* op, unsigned number);
  void fillFromArgument(Sizes& sizes, mlir::BlockArgument argument);

  llvm::DenseMap<mlir::Value, Sizes> known_;
};

/// Both are known, and equal as numbers or one value.
bool isSameSize(mlir::OpFoldResult a, mlir::OpFoldResult b);

/// The same as values at the builder's insertion point (after `tile`), creating constants and block-extent products. Null where
/// nothing can be created.
llvm::SmallVector<mlir::Value> tileSizeValues(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value tile);

/// The extents of a view: static ones as attributes, a subview's from its operands, otherwise null.
llvm::SmallVector<mlir::OpFoldResult> viewSizes(mlir::Value view);

}  // namespace vortex::ir
