// How long the shared allocations of a phase hold something that is still needed.
//
// A vx.alloc lives from its place to the last operation of its own block that needs its memory: one that accesses it or a window of it, one
// that holds such an access inside (a loop counts as a whole: an allocation outside it lives through all iterations), and one that uses a
// tile computed from its elements, because back ends read memory where a tile is used, not where it is loaded (tiles that leave or enter a region have registers or buffers of their own). An allocation inside a loop
// begins anew in every iteration. A copy that a `vx.stage_copy` started may still be writing when the last use is over: `needsDrain`.
#pragma once

#include "ir/vx.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>

namespace vortex::analysis {

class SharedLifetimes {
public:
  struct Lifetime {
    mlir::Operation* last = nullptr;  ///< in the allocation's block; the terminator when it lives to the end
    bool isStaged = false;            ///< asynchronous copies write to it
    bool needsDrain = false;          ///< no `vx.stage_wait 0` of its block stands between its last copy and `last`
    uint32_t firstLine = 0, lastLine = 0;  ///< of the declaration and of the last use in the same file; 0: unknown
  };

  explicit SharedLifetimes(ir::KernelOp phase);

  /// Allocations whose memory nothing needs after `op`, in program order.
  llvm::ArrayRef<mlir::Operation*> endingAfter(mlir::Operation* op) const;
  const Lifetime& of(ir::AllocOp alloc) const;

private:
  void add(ir::AllocOp alloc);

  llvm::DenseMap<mlir::Operation*, Lifetime> lifetimes_;
  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<mlir::Operation*, 2>> ends_;
};

}  // namespace vortex::analysis
