#include "target/interface/tile_order.h"

#include "ir/root_view.h"

#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/TypeSwitch.h>

namespace vortex::target {

bool mayWrite(mlir::Operation* effect, mlir::Value view) {
  if (mlir::isa<ir::BarrierOp>(effect))
    return true;
  const mlir::Value root = ir::rootView(view);
  bool writes = false;
  effect->walk([&](mlir::Operation* op) {
    llvm::TypeSwitch<mlir::Operation*>(op)
        .Case<ir::StoreOp, ir::TileStoreOp, ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicStoreOp>(
            [&](auto store) { writes |= ir::rootView(store.getView()) == root; })
        .Case([&](ir::StageCopyOp copy) { writes |= ir::rootView(copy.getDestination()) == root; });
  });
  return writes;
}

bool isReadAfter(ir::TileLoadOp load, mlir::Operation* op, llvm::function_ref<bool(mlir::Value)> hasPlace,
                 llvm::function_ref<bool(mlir::Operation*)> isPerElement) {
  llvm::DenseSet<mlir::Value> seen;
  llvm::SmallVector<mlir::Value> pending{load.getResult()};
  while (!pending.empty()) {
    mlir::Value value = pending.pop_back_val();
    if (!seen.insert(value).second || hasPlace(value))
      continue;
    for (mlir::Operation* user : value.getUsers()) {
      mlir::Operation* here = op->getBlock()->findAncestorOpInBlock(*user);
      if (!here || (here != op && op->isBeforeInBlock(here)) || (here == op && op->getNumRegions() != 0))
        return true;
      if (here != op && (user->getNumRegions() == 0 || isPerElement(here)))
        for (mlir::Value result : (isPerElement(here) ? here : user)->getResults())
          if (mlir::isa<mlir::RankedTensorType>(result.getType()))
            pending.push_back(result);
    }
  }
  return false;
}

}  // namespace vortex::target
