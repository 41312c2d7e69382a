#include "target/gpu/straight.h"

#include "ir/vxt.h"
#include "target/gpu/access.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Interfaces/SideEffectInterfaces.h>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
namespace scf = mlir::scf;

llvm::DenseSet<mlir::Value> writtenRoots(mlir::Operation* op) {
  llvm::DenseSet<mlir::Value> written;
  op->walk([&](mlir::Operation* inner) {
    forEachAccess(inner, [&](mlir::Value view, bool isWrite) {
      if (isWrite)
        written.insert(rootOf(view));
    });
  });
  return written;
}

namespace {

bool isAccess(mlir::Operation* op) { return mlir::isa<ir::LoadOp, ir::StoreOp>(op); }

mlir::Value viewOf(mlir::Operation* access) {
  if (auto load = mlir::dyn_cast<ir::LoadOp>(access))
    return load.getView();
  return mlir::cast<ir::StoreOp>(access).getView();
}

bool isGlobal(mlir::Operation* access) {
  return mlir::cast<ir::ViewType>(viewOf(access).getType()).getSpace() == ir::Space::Global;
}

}  // namespace

bool addTraffic(mlir::Block& block, const llvm::DenseSet<mlir::Value>& written, Traffic& traffic) {
  for (mlir::Operation& op : block) {
    ++traffic.operations;
    if (auto branch = mlir::dyn_cast<scf::IfOp>(op)) {
      for (mlir::Region& side : branch->getRegions())
        if (!side.empty() && !addTraffic(side.front(), written, traffic))
          return false;
    } else if (isAccess(&op)) {
      if (!isGlobal(&op))
        return false;
      if (auto load = mlir::dyn_cast<ir::LoadOp>(op)) {
        if (written.contains(rootOf(load.getView())))
          return false;
        traffic.loadedBytes += ir::vxt::valueBytes(load.getType());
      }
    } else if (!op.hasTrait<mlir::OpTrait::IsTerminator>() && !mlir::isPure(&op)) {
      return false;  // a division by what may be zero, too
    }
  }
  return true;
}

void turnIntoMasks(scf::IfOp branch) {
  mlir::OpBuilder b(branch);
  mlir::Location loc = branch.getLoc();
  mlir::Value condition = branch.getCondition();
  llvm::SmallVector<mlir::Value> results[2];
  for (auto [number, side] : llvm::enumerate(branch->getRegions())) {
    if (side.empty())
      continue;
    mlir::Value holds = condition;
    if (number == 1)
      holds = b.create<arith::XOrIOp>(loc, condition, b.create<arith::ConstantIntOp>(loc, 1, 1));
    for (mlir::Operation& op : llvm::make_early_inc_range(side.front())) {
      if (op.hasTrait<mlir::OpTrait::IsTerminator>()) {
        results[number].append(op.operand_begin(), op.operand_end());
        continue;
      }
      op.moveBefore(branch);
      const auto restrict = [&](auto access) {
        b.setInsertionPoint(access);
        mlir::Value own = access.getMask();
        access.getMaskMutable().assign(own ? b.create<arith::AndIOp>(loc, own, holds).getResult() : holds);
        b.setInsertionPoint(branch);
      };
      op.walk([&](ir::LoadOp load) { restrict(load); });
      op.walk([&](ir::StoreOp store) { restrict(store); });
    }
  }
  for (auto [result, then, otherwise] : llvm::zip(branch.getResults(), results[0], results[1]))
    result.replaceAllUsesWith(b.create<arith::SelectOp>(loc, condition, then, otherwise));
  branch.erase();
}

}  // namespace vortex::target::gpu
