#include "target/gpu/tiles/lifetimes.h"

#include "target/gpu/tiles/closure.h"

#include <llvm/ADT/SetVector.h>

namespace vortex::target::gpu::tiles {

/// The outermost control flow around `op`, inside `block`, that every element runs by itself; `op` if there is none.
static mlir::Operation* evaluated(mlir::Operation* op, mlir::Block& block) {
  mlir::Operation* found = op;
  for (mlir::Operation* around = op; around && around->getBlock() != &block; around = around->getParentOp())
    if (around->getParentOp()->hasAttr(kPerElement))
      found = around->getParentOp();
  return found;
}

TileLifetimes::TileLifetimes(mlir::Operation* phase) {
  phase->walk([&](mlir::Operation* op) {
    for (mlir::Value result : op->getResults())
      if (isTile(result))
        add(result);
  });
}

void TileLifetimes::add(mlir::Value tile) {
  mlir::Block& block = *tile.getParentBlock();
  mlir::Operation* last = tile.getDefiningOp();
  llvm::SetVector<mlir::Value> reached;
  reached.insert(tile);
  for (size_t i = 0; i < reached.size(); ++i)
    for (mlir::Operation* user : reached[i].getUsers()) {
      mlir::Operation* here = block.findAncestorOpInBlock(*user);
      if (!here)  // what is reached lies in a block around this one
        return;
      if (last->isBeforeInBlock(here))
        last = here;
      mlir::Operation* op = evaluated(user, block);
      if (llvm::isa<ir::DotOp>(op) || (op->getNumRegions() != 0 && !op->hasAttr(kPerElement)))
        continue;
      for (mlir::Value result : op->getResults())
        if (isTile(result))
          reached.insert(result);
    }
  if (!last->hasTrait<mlir::OpTrait::IsTerminator>())
    ends_[last].push_back(tile);
}

llvm::ArrayRef<mlir::Value> TileLifetimes::endingAfter(mlir::Operation* op) const {
  auto found = ends_.find(op);
  return found == ends_.end() ? llvm::ArrayRef<mlir::Value>() : llvm::ArrayRef(found->second);
}

}  // namespace vortex::target::gpu::tiles
