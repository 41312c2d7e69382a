#include "analysis/shared_lifetimes.h"

#include "base/check.h"
#include "ir/location.h"

#include <llvm/ADT/SetVector.h>

namespace vortex::analysis {

namespace {

/// Memory is reached through these: windows, and tiles that are read where they are used.
bool carriesMemory(mlir::Value value) { return mlir::isa<ir::ViewType, mlir::RankedTensorType>(value.getType()); }

}  // namespace

SharedLifetimes::SharedLifetimes(ir::KernelOp phase) {
  phase.walk([&](ir::AllocOp alloc) {
    if (alloc.getResult().getType().getSpace() == ir::Space::Shared)
      add(alloc);
  });
}

void SharedLifetimes::add(ir::AllocOp alloc) {
  mlir::Block* block = alloc->getBlock();
  mlir::Operation *last = alloc, *lastCopy = nullptr;
  Lifetime lifetime;
  mlir::FileLineColLoc declared = ir::fileLocation(alloc.getLoc());
  if (declared)
    lifetime.firstLine = lifetime.lastLine = declared.getLine();
  llvm::SetVector<mlir::Value> reached;
  reached.insert(alloc.getResult());
  for (size_t i = 0; i < reached.size(); ++i)
    for (mlir::Operation* user : reached[i].getUsers()) {
      mlir::Operation* here = block->findAncestorOpInBlock(*user);
      VORTEX_CHECK(here, "memory is used outside the scope of its allocation");
      if (last->isBeforeInBlock(here))
        last = here;
      if (auto copy = mlir::dyn_cast<ir::StageCopyOp>(user); copy && copy.getDestination() == reached[i])
        if (!lastCopy || lastCopy->isBeforeInBlock(here))
          lastCopy = here;
      if (mlir::FileLineColLoc at = ir::fileLocation(user->getLoc());
          at && declared && at.getFilename() == declared.getFilename())
        lifetime.lastLine = std::max<uint32_t>(lifetime.lastLine, at.getLine());
      if (user->getNumRegions() == 0)
        for (mlir::Value result : user->getResults())
          if (carriesMemory(result))
            reached.insert(result);
    }
  lifetime.last = last;
  lifetime.isStaged = lifetime.needsDrain = lastCopy != nullptr;
  for (mlir::Operation* op = lastCopy; op; op = op == last ? nullptr : op->getNextNode())
    if (auto wait = mlir::dyn_cast<ir::StageWaitOp>(op); wait && wait.getPending() == 0)
      lifetime.needsDrain = false;
  if (!last->hasTrait<mlir::OpTrait::IsTerminator>())
    ends_[last].push_back(alloc);
  lifetimes_[alloc] = lifetime;
}

llvm::ArrayRef<mlir::Operation*> SharedLifetimes::endingAfter(mlir::Operation* op) const {
  auto found = ends_.find(op);
  return found == ends_.end() ? llvm::ArrayRef<mlir::Operation*>() : llvm::ArrayRef(found->second);
}

const SharedLifetimes::Lifetime& SharedLifetimes::of(ir::AllocOp alloc) const {
  auto found = lifetimes_.find(alloc);
  VORTEX_CHECK(found != lifetimes_.end(), "not an allocation of this phase");
  return found->second;
}

}  // namespace vortex::analysis
