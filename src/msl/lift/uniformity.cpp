// Optimistic: everything is uniform until something shows otherwise. Results of a condition or loop are uniform only if the condition is too; a
// branch that yields poison has no vote, else one early exit would make every loop counter per thread.
#include "msl/lift/uniformity.h"

#include "ir/vx.h"

#include "mlir/Dialect/UB/IR/UBOps.h"

namespace vortex::msl::lift {

namespace scf = mlir::scf;

Uniformity::Uniformity(mlir::func::FuncOp function, llvm::ArrayRef<mlir::Value> perThread,
                       llvm::ArrayRef<mlir::Value> readOnly)
    : perThread_(perThread.begin(), perThread.end()), readOnly_(readOnly.begin(), readOnly.end()) {
  function.walk([&](ir::BarrierOp barrier) {
    for (mlir::Operation* op = barrier; op != function; op = op->getParentOp())
      withBarrier_.insert(op);
  });
  do {
    changed_ = false;
    visit(function.getBody().front(), true);
  } while (changed_);
}

/// Whether all threads compute the same, and may do so once.
bool Uniformity::isUniformLeaf(mlir::Operation& op) const {
  auto load = llvm::dyn_cast<ir::LoadOp>(op);
  bool isTable = load && readOnly_.contains(load.getView());
  bool differs = llvm::any_of(op.getOperands(), [&](mlir::Value value) { return perThread_.contains(value); });
  return !differs && (isTable || mlir::isPure(&op));
}

bool Uniformity::isUniformChoice(mlir::Operation& op) const {
  auto choice = llvm::dyn_cast<scf::IfOp>(op);
  if (!choice || isPerThread(choice.getCondition()))
    return false;
  return llvm::all_of(op.getRegions(), [&](mlir::Region& region) {
    return region.empty() || llvm::all_of(region.front(), [&](mlir::Operation& inner) {
             return inner.getNumRegions() == 0 ? isUniformLeaf(inner) : isUniformChoice(inner);
           });
  });
}

bool Uniformity::isUniformlyChosen(mlir::OpResult result) const {
  auto choice = llvm::dyn_cast<scf::IfOp>(result.getOwner());
  if (!choice || isPerThread(choice.getCondition()))
    return false;
  return llvm::all_of(choice->getRegions(), [&](mlir::Region& region) {
    mlir::Value yielded = region.front().getTerminator()->getOperand(result.getResultNumber());
    return yielded.getDefiningOp<mlir::ub::PoisonOp>() ||
           (!isPerThread(yielded) && !region.isAncestor(yielded.getParentRegion()));
  });
}

void Uniformity::visitLeaf(mlir::Operation& op, bool isBlockLevel) {
  if (!isBlockLevel || !isUniformLeaf(op))
    for (mlir::Value result : op.getResults())
      mark(result);
}

void Uniformity::visit(mlir::Block& block, bool isBlockLevel) {
  for (mlir::Operation& op : block) {
    if (op.getNumRegions() == 0) {
      visitLeaf(op, isBlockLevel);
      continue;
    }
    if (isBlockLevel && !hasBarrier(&op) && isUniformChoice(op))
      continue;
    if (!isBlockLevel || !hasBarrier(&op)) {
      for (mlir::OpResult result : op.getResults())
        if (!isBlockLevel || !isUniformlyChosen(result))
          mark(result);
      for (mlir::Region& region : op.getRegions())
        for (mlir::Block& inner : region) {
          for (mlir::Value argument : inner.getArguments())
            mark(argument);
          visit(inner, false);
        }
      continue;
    }
    for (mlir::Region& region : op.getRegions())
      for (mlir::Block& inner : region)
        visit(inner, true);
    if (llvm::isa<scf::WhileOp>(op))
      visitWhile(op);
    else
      visitBranches(op);
  }
}

void Uniformity::visitWhile(mlir::Operation& op) {
  auto loop = llvm::cast<scf::WhileOp>(op);
  scf::ConditionOp condition = loop.getConditionOp();
  for (auto [argument, initial, next] :
       llvm::zip(loop.getBeforeArguments(), loop.getInits(), loop.getYieldOp().getOperands()))
    if (isPerThread(initial) || isPerThread(next))
      mark(argument);
  bool differs = isPerThread(condition.getCondition());
  for (auto [argument, result, passed] : llvm::zip(loop.getAfterArguments(), loop.getResults(), condition.getArgs())) {
    if (isPerThread(passed))
      mark(argument);
    if (differs || isPerThread(passed))
      mark(result);
  }
}

void Uniformity::visitBranches(mlir::Operation& op) {
  auto choice = llvm::cast<scf::IfOp>(op);
  bool differs = isPerThread(choice.getCondition());
  for (auto [i, result] : llvm::enumerate(choice.getResults())) {
    unsigned votes = 0;
    bool isMixed = false;
    for (mlir::Region& region : choice->getRegions()) {
      mlir::Value yielded = region.front().getTerminator()->getOperand(static_cast<unsigned>(i));
      if (yielded.getDefiningOp<mlir::ub::PoisonOp>())
        continue;
      ++votes;
      isMixed |= isPerThread(yielded);
    }
    if (isMixed || (differs && votes != 1))
      mark(result);
  }
}

}  // namespace vortex::msl::lift
