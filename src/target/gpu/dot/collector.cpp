#include "target/gpu/dot/collector.h"

#include "target/gpu/dot/product.h"

#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/IR/Matchers.h>

namespace vortex::target::gpu::dot {

/// The one product between a loop argument and the value that its loop yields for it; null where anything else uses the tiles on the way.
static ir::DotOp collectedProduct(mlir::Value argument) {
  auto block = llvm::dyn_cast<mlir::BlockArgument>(argument);
  auto loop = block ? llvm::dyn_cast<mlir::scf::ForOp>(block.getOwner()->getParentOp()) : nullptr;
  if (!loop || block.getArgNumber() == 0)
    return nullptr;
  ir::DotOp found;
  for (mlir::Value value = argument; value.hasOneUse();) {
    mlir::OpOperand& use = *value.use_begin();
    mlir::Operation* user = use.getOwner();
    if (auto product = llvm::dyn_cast<ir::DotOp>(user)) {
      if (found || &use != &product.getAccMutable())
        return nullptr;
      found = product;
      value = product.getResult();
    } else if (auto inner = llvm::dyn_cast<mlir::scf::ForOp>(user)) {
      mlir::BlockArgument innerArgument = inner.getTiedLoopRegionIterArg(&use);
      ir::DotOp product = innerArgument ? collectedProduct(innerArgument) : nullptr;
      if (found || !product)
        return nullptr;
      found = product;
      value = inner.getTiedLoopResult(&use);
    } else {
      bool isOwn = llvm::isa<mlir::scf::YieldOp>(user) && user->getParentOp() == loop &&
                   use.getOperandNumber() + 1 == block.getArgNumber();
      return isOwn ? found : nullptr;
    }
  }
  return nullptr;
}

static bool isZero(mlir::Value tile) {
  if (auto broadcast = tile.getDefiningOp<ir::BroadcastOp>())
    tile = broadcast.getValue();
  return mlir::matchPattern(tile, mlir::m_AnyZeroFloat()) || mlir::matchPattern(tile, mlir::m_Zero());
}

std::optional<Values> Collector::registersFor(mlir::Value tile, mlir::Value target) {
  auto held = sums_.find(tile);
  if (held != sums_.end()) {
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(target); argument && !products_.contains(target))
      products_[target] = collectedProduct(argument);
    return held->second;
  }
  ir::DotOp product = isZero(tile) ? collectedProduct(target) : nullptr;
  if (!product || !fillsBlockTile(e_.l, product))
    return std::nullopt;
  products_[target] = product;
  return zeroSums(e_, product);
}

bool Collector::bind(mlir::Value target, mlir::Value like, llvm::ArrayRef<Value> registers) {
  auto found = products_.find(like);
  if (found == products_.end())
    return false;
  ir::DotOp product = found->second;
  products_[target] = product;
  sums_[target] = Values(registers);
  // The result of a loop around which another one collects goes on as registers.
  auto result = llvm::dyn_cast<mlir::OpResult>(target);
  if (!result)
    return true;
  bool goesOn = false;
  if (target.hasOneUse()) {
    mlir::OpOperand& use = *target.use_begin();
    if (auto around = llvm::dyn_cast<mlir::scf::ForOp>(use.getOwner()->getParentOp());
        around && llvm::isa<mlir::scf::YieldOp>(use.getOwner())) {
      auto outer = products_.find(around.getRegionIterArg(use.getOperandNumber()));
      goesOn = outer != products_.end() && outer->second == product;
    }
  }
  if (!goesOn) {
    sums_.erase(target);
    storeSums(e_, product, layouts_.find(product)->second, registers, target);
  }
  return true;
}

bool Collector::add(ir::DotOp dot) {
  auto held = sums_.find(dot.getAcc());
  if (held == sums_.end())
    return false;
  Values sums = held->second;
  layouts_.insert_or_assign(dot, addProduct(e_, dot, sums));
  sums_[dot.getResult()] = sums;
  return true;
}

}  // namespace vortex::target::gpu::dot
