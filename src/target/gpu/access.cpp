#include "target/gpu/access.h"

#include <llvm/ADT/TypeSwitch.h>

namespace vortex::target::gpu {

mlir::Value rootOf(mlir::Value view) {
  while (auto subview = view.getDefiningOp<ir::SubviewOp>())
    view = subview.getSource();
  return view;
}

void forEachAccess(mlir::Operation* op, llvm::function_ref<void(mlir::Value view, bool isWrite)> visit) {
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case<ir::LoadOp, ir::TileLoadOp>([&](auto load) { visit(load.getView(), false); })
      .Case<ir::StoreOp, ir::TileStoreOp>([&](auto store) { visit(store.getView(), true); })
      .Case([&](ir::StageCopyOp copy) {
        visit(copy.getSource(), false);
        visit(copy.getDestination(), true);
      })
      .Case<ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp, ir::AtomicStoreOp>([&](auto atomic) {
        visit(atomic.getView(), false);
        visit(atomic.getView(), true);
      });
}

}  // namespace vortex::target::gpu
