// Hints to the memory system: what thread regions will read next, and outputs that no cache can hold.
#include "target/cpu/emit/region_emitter.h"

namespace vortex::target::cpu::emit {

using llvm::Value;

/// The rows of a two-dimensional block are short pieces of long rows, and the hardware follows only a few such streams at once. The next
/// block reads what follows along x; blocks run in that order.
void RegionEmitter::prefetchNextBlock(const Access& access) {
  if (!shape_.rows || isOne(dims_[1]) || access.blockPrivate || !e_.unitStrides ||
      !mlir::isa<ir::KernelOp>(region_->getParentOp()))
    return;
  Value* next = ir_.CreateAdd(access.offset.value, dims_[0]);
  emitPrefetch(ir_, elementPointer(ir_, access.type, access.pointer, next), shape_.width * elementBytes(access.type));
}

/// Something besides per-thread stores uses the view.
static bool mayBeRead(mlir::Value view) {
  return llvm::any_of(view.getUsers(), [&](mlir::Operation* user) {
    if (auto subview = mlir::dyn_cast<ir::SubviewOp>(user))
      return mayBeRead(subview.getResult());
    return !mlir::isa<ir::StoreOp, ir::DimOp>(user);
  });
}

/// Other blocks may wait for what this one writes; streaming stores are not ordered before the atomic that tells them.
static bool hasAtomics(ir::KernelOp kernel) {
  return kernel
      .walk([](mlir::Operation* op) {
        return mlir::isa<ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp, ir::AtomicStoreOp, ir::FenceOp>(op)
                   ? mlir::WalkResult::interrupt()
                   : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// i1: the view is too large for the caches. Null: never, or warps do not fill whole cache lines.
Value* RegionEmitter::wantsStreaming(const Access& access) {
  uint64_t bytes = elementBytes(access.type);
  if (access.blockPrivate || !e_.unitStrides || shape_.width * bytes % 64 != 0 ||
      !mlir::isa<mlir::BlockArgument>(access.root) || mayBeRead(access.root) || hasAtomics(e_.kernel))
    return nullptr;
  Value* size = ir_.getInt64(int64_t(bytes));
  for (Value* extent : e_.view(access.root).extents)
    size = ir_.CreateMul(size, extent);
  return ir_.CreateICmpUGE(size, ir_.getInt64(kStreamBytes));
}

}  // namespace vortex::target::cpu::emit
