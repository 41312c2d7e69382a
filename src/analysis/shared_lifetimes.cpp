#include "analysis/shared_lifetimes.h"

#include "analysis/element_control.h"
#include "base/check.h"
#include "ir/location.h"

#include <llvm/ADT/SetVector.h>
#include <mlir/Dialect/SCF/IR/SCF.h>

namespace vortex::analysis {

namespace {

/// Memory is reached through these: windows, and tiles that are read where they are used.
bool carriesMemory(mlir::Value value) { return mlir::isa<ir::ViewType, mlir::RankedTensorType>(value.getType()); }

/// The last operation of the block that is one of the users or holds one; null if there is none.
mlir::Operation* lastIn(mlir::Block& block, llvm::ArrayRef<mlir::Operation*> users) {
  mlir::Operation* last = nullptr;
  for (mlir::Operation* user : users)
    if (mlir::Operation* here = block.findAncestorOpInBlock(*user); here && (!last || last->isBeforeInBlock(here)))
      last = here;
  return last;
}

/// Of an `scf.if`: what is last in the last branch that holds a user, the `if` where it gives that to what follows.
mlir::Operation* lastInBranches(mlir::Operation* last, llvm::ArrayRef<mlir::Operation*> users) {
  while (mlir::isa<mlir::scf::IfOp>(last)) {
    mlir::Operation* inner = nullptr;
    for (mlir::Region& branch : last->getRegions())
      if (mlir::Operation* here = branch.empty() ? nullptr : lastIn(branch.front(), users))
        inner = here;
    if (!inner || inner->hasTrait<mlir::OpTrait::IsTerminator>())
      break;
    last = inner;
  }
  return last;
}

}  // namespace

SharedLifetimes::SharedLifetimes(ir::KernelOp phase) {
  phase.walk([&](ir::AllocOp alloc) {
    if (alloc.getResult().getType().getSpace() == ir::Space::Shared)
      add(alloc);
  });
}

void SharedLifetimes::add(ir::AllocOp alloc) {
  mlir::Block* block = alloc->getBlock();
  mlir::Operation* lastCopy = nullptr;
  llvm::SmallVector<mlir::Operation*> users = {alloc};
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
      users.push_back(user);
      if (auto copy = mlir::dyn_cast<ir::StageCopyOp>(user); copy && copy.getDestination() == reached[i])
        if (!lastCopy || lastCopy->isBeforeInBlock(here))
          lastCopy = here;
      if (mlir::FileLineColLoc at = ir::fileLocation(user->getLoc());
          at && declared && at.getFilename() == declared.getFilename())
        lifetime.lastLine = std::max<uint32_t>(lifetime.lastLine, at.getLine());
      auto reach = [&](mlir::Operation* op) {
        for (mlir::Value result : op->getResults())
          if (carriesMemory(result))
            reached.insert(result);
      };
      if (user->getNumRegions() == 0)
        reach(user);
      // What every element runs by itself runs where its results are used.
      for (mlir::Operation* op = user; op != block->getParentOp(); op = op->getParentOp())
        if (mlir::isa<mlir::scf::IfOp, mlir::scf::ForOp, mlir::scf::WhileOp>(op) && isElementControl(op))
          reach(op);
    }
  mlir::Operation* last = lastIn(*block, users);
  if (!lastCopy)
    last = lastInBranches(last, users);
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
