#include "target/gpu/dot/collector.h"

#include "passes/narrow_rewrites.h"
#include "target/gpu/dot/product.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/IR/Matchers.h>

namespace vortex::target::gpu::dot {

static bool isZero(mlir::Value tile) {
  if (auto broadcast = tile.getDefiningOp<ir::BroadcastOp>())
    tile = broadcast.getValue();
  return mlir::matchPattern(tile, mlir::m_AnyZeroFloat()) || mlir::matchPattern(tile, mlir::m_Zero());
}

/// The product that is added to what `use` multiplies by factors of rows, which are in memory by then; null: there is none.
static ir::DotOp scaledProduct(mlir::OpOperand& use, Collector::Scaled& scaled) {
  auto times = llvm::dyn_cast<mlir::arith::MulFOp>(use.getOwner());
  auto sum = times && times->hasOneUse() ? llvm::dyn_cast<mlir::arith::AddFOp>(*times->user_begin()) : nullptr;
  if (!sum || !passes::allowsContraction(times) || !passes::allowsContraction(sum))
    return nullptr;
  auto factors = times->getOperand(1 - use.getOperandNumber()).getDefiningOp<ir::BroadcastOp>();
  auto product = (sum.getLhs() == times.getResult() ? sum.getRhs() : sum.getLhs()).getDefiningOp<ir::DotOp>();
  auto load = factors ? factors.getValue().getDefiningOp<ir::TileLoadOp>() : nullptr;
  if (!load || !product || !product->hasOneUse() || !isZero(product.getAcc()) ||
      load->getBlock() != product->getBlock() || sum->getBlock() != product->getBlock() ||
      !load->isBeforeInBlock(product))
    return nullptr;
  auto type = llvm::cast<mlir::RankedTensorType>(load.getType());
  if (type.getRank() != 2 || type.getDimSize(1) != 1 ||
      type.getDimSize(0) != llvm::cast<mlir::RankedTensorType>(product.getType()).getDimSize(0))
    return nullptr;
  scaled = {use.get(), load, sum};
  return product;
}

/// The one product between a loop argument and the value that its loop yields for it; null where anything else uses the tiles on the way.
static ir::DotOp collectedProduct(mlir::Value argument, Collector::Scaled& scaled) {
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
      ir::DotOp product = innerArgument ? collectedProduct(innerArgument, scaled) : nullptr;
      if (found || !product)
        return nullptr;
      found = product;
      value = inner.getTiedLoopResult(&use);
    } else if (llvm::isa<mlir::arith::MulFOp>(user)) {
      ir::DotOp product = found ? nullptr : scaledProduct(use, scaled);
      if (!product)
        return nullptr;
      found = product;
      value = scaled.result;
    } else {
      bool isOwn = llvm::isa<mlir::scf::YieldOp>(user) && user->getParentOp() == loop &&
                   use.getOperandNumber() + 1 == block.getArgNumber();
      return isOwn ? found : nullptr;
    }
  }
  return nullptr;
}

std::optional<Values> Collector::registersFor(mlir::Value tile, mlir::Value target) {
  Scaled scaled;
  auto held = sums_.find(tile);
  if (held != sums_.end()) {
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(target); argument && !products_.contains(target))
      products_[target] = collectedProduct(argument, scaled);
    return held->second;
  }
  ir::DotOp product = isZero(tile) ? collectedProduct(target, scaled) : nullptr;
  if (!product || !fillsBlockTile(e_.l, product) || (scaled.factors && !canScale(e_.l, product)))
    return std::nullopt;
  products_[target] = product;
  if (scaled.factors)
    scaled_[product] = scaled;
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
  const auto scaled = scaled_.find(dot);
  const bool isScaled = scaled != scaled_.end();
  auto held = sums_.find(isScaled ? scaled->second.sums : dot.getAcc());
  if (held == sums_.end())
    return false;
  Values sums = held->second;
  if (isScaled)
    scaleSums(e_, dot, sums, scaled->second.factors);
  layouts_.insert_or_assign(dot, addProduct(e_, dot, sums));
  sums_[isScaled ? scaled->second.result : dot.getResult()] = sums;
  return true;
}

}  // namespace vortex::target::gpu::dot
