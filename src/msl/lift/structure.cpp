#include "msl/lift/structure.h"

#include "ir/vx.h"

#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CFGToSCF.h"

namespace vortex::msl::lift {

namespace arith = mlir::arith;
namespace scf = mlir::scf;

/// The cases of a switch as nested conditions; the last region is the default.
static void expandSwitch(scf::IndexSwitchOp op) {
  mlir::OpBuilder b(op);
  mlir::Location loc = op.getLoc();
  llvm::SmallVector<mlir::Value> results;
  llvm::ArrayRef<int64_t> cases = op.getCases();
  mlir::Operation* outermost = nullptr;
  for (unsigned i = 0; i < cases.size(); ++i) {
    auto number = b.create<arith::ConstantIndexOp>(loc, cases[i]);
    auto isThis = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, op.getArg(), number);
    auto choice = b.create<scf::IfOp>(loc, op.getResultTypes(), isThis, true, true);
    for (mlir::Region& region : choice->getRegions())
      region.getBlocks().clear();
    choice.getThenRegion().takeBody(op.getCaseRegions()[i]);
    if (outermost)
      b.create<scf::YieldOp>(loc, choice.getResults());
    else
      outermost = choice;
    if (i + 1 == cases.size()) {
      choice.getElseRegion().takeBody(op.getDefaultRegion());
      break;
    }
    b.createBlock(&choice.getElseRegion());
  }
  op->replaceAllUsesWith(outermost->getResults());
  op.erase();
}

bool structureControl(mlir::func::FuncOp function) {
  mlir::ControlFlowToSCFTransformation interface;
  mlir::DominanceInfo dominance(function);
  if (mlir::failed(mlir::transformCFGToSCF(function.getBody(), interface, dominance)))
    return false;
  llvm::SmallVector<scf::IndexSwitchOp> switches;
  function.walk([&](scf::IndexSwitchOp op) { switches.push_back(op); });
  for (scf::IndexSwitchOp op : switches)
    expandSwitch(op);
  return true;
}

}  // namespace vortex::msl::lift
