// How long the shared allocations of a phase hold something that is still needed.
//
// A vx.alloc lives from its place to the last operation that needs its memory: one that accesses it or a window of it, a loop around such an
// access (an allocation outside it lives through all iterations), and one that uses a tile computed from its elements, because back ends read
// memory where a tile is used, not where it is loaded (tiles that leave or enter a region have registers or buffers of their own). That
// operation stands in the allocation's own block or in a branch there: the last branch that needs it. An allocation inside a loop begins anew in every iteration.
// A copy that a `vx.stage_copy` started may still be writing when the last use is over, `needsDrain`; such an allocation lives to the end of branches.
#pragma once

#include "ir/vx.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>

namespace vortex::analysis {

class SharedLifetimes {
public:
  struct Lifetime {
    mlir::Operation* last = nullptr;  ///< the terminator of the allocation's block when it lives to the end
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
