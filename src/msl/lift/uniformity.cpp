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

void Uniformity::visitLeaf(mlir::Operation& op, bool isBlockLevel) {
  auto load = llvm::dyn_cast<ir::LoadOp>(op);
  bool isTable = load && readOnly_.contains(load.getView());
  bool differs = llvm::any_of(op.getOperands(), [&](mlir::Value value) { return perThread_.contains(value); });
  bool isUniform = isBlockLevel && !differs && (isTable || mlir::isPure(&op));
  if (!isUniform)
    for (mlir::Value result : op.getResults())
      mark(result);
}

void Uniformity::visit(mlir::Block& block, bool isBlockLevel) {
  for (mlir::Operation& op : block) {
    if (op.getNumRegions() == 0) {
      visitLeaf(op, isBlockLevel);
      continue;
    }
    if (!isBlockLevel || !hasBarrier(&op)) {
      for (mlir::Value result : op.getResults())
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
