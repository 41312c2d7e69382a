// Values that only threads make and use: they flow through control flow in registers.
#include "ir/vx.h"
#include "target/gpu/tiles/tiles_state.h"

#include <mlir/Dialect/SCF/IR/SCF.h>

namespace vortex::target::gpu::tiles {

namespace {

namespace scf = mlir::scf;
using Set = llvm::DenseSet<mlir::Value>;

bool isVectorTile(mlir::Value value) {
  auto type = llvm::dyn_cast<mlir::RankedTensorType>(value.getType());
  return type && type.getRank() == 1;
}

/// Made anew wherever it is needed.
bool isSplat(mlir::Value value) {
  if (auto broadcast = value.getDefiningOp<ir::BroadcastOp>())
    return !isTile(broadcast.getValue());
  auto constant = value.getDefiningOp<mlir::arith::ConstantOp>();
  return constant && llvm::isa<mlir::SplatElementsAttr>(constant.getValue());
}

/// Values from which control flow gives `value` its own; nothing: it is not control flow that does.
std::optional<llvm::SmallVector<mlir::Value>> sourcesOf(mlir::Value value) {
  mlir::Operation* op = value.getDefiningOp();
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(value);
  if (argument)
    op = argument.getOwner()->getParentOp();
  if (auto loop = llvm::dyn_cast<scf::ForOp>(op)) {
    unsigned i = argument ? argument.getArgNumber() - 1 : llvm::cast<mlir::OpResult>(value).getResultNumber();
    return {{loop.getInitArgs()[i], loop.getYieldedValues()[i]}};
  }
  if (auto branch = llvm::dyn_cast<scf::IfOp>(op)) {
    unsigned i = llvm::cast<mlir::OpResult>(value).getResultNumber();
    return {{branch.thenYield().getOperand(i), branch.elseYield().getOperand(i)}};
  }
  if (auto loop = llvm::dyn_cast<scf::WhileOp>(op)) {
    unsigned i = argument ? argument.getArgNumber() : llvm::cast<mlir::OpResult>(value).getResultNumber();
    if (argument && argument.getOwner() == loop.getBeforeBody())
      return {{loop.getInits()[i], loop.getYieldOp().getOperand(i)}};
    return {{loop.getConditionOp().getArgs()[i]}};
  }
  return std::nullopt;
}

/// Values to which control flow hands what is used here.
llvm::SmallVector<mlir::Value> targetsOf(mlir::OpOperand& use) {
  mlir::Operation* op = use.getOwner();
  unsigned i = use.getOperandNumber();
  if (auto loop = llvm::dyn_cast<scf::ForOp>(op)) {
    unsigned first = loop.getNumControlOperands();
    return i < first ? llvm::SmallVector<mlir::Value>{}
                     : llvm::SmallVector<mlir::Value>{loop.getRegionIterArg(i - first), loop.getResult(i - first)};
  }
  if (auto loop = llvm::dyn_cast<scf::WhileOp>(op))
    return {loop.getBeforeArguments()[i]};
  mlir::Operation* parent = op->getParentOp();
  if (llvm::isa<scf::ConditionOp>(op)) {
    auto loop = llvm::cast<scf::WhileOp>(parent);
    return i == 0 ? llvm::SmallVector<mlir::Value>{}
                  : llvm::SmallVector<mlir::Value>{loop.getAfterArguments()[i - 1], loop.getResult(i - 1)};
  }
  if (!llvm::isa<scf::YieldOp>(op))
    return {};
  if (auto loop = llvm::dyn_cast<scf::ForOp>(parent))
    return {loop.getRegionIterArg(i), loop.getResult(i)};
  if (auto branch = llvm::dyn_cast<scf::IfOp>(parent))
    return {branch.getResult(i)};
  if (auto loop = llvm::dyn_cast<scf::WhileOp>(parent))
    return {loop.getBeforeArguments()[i]};
  return {};
}

bool isMadeByThreads(mlir::Value value, const Set& set) {
  auto known = [&](mlir::Value source) { return set.contains(source) || isSplat(source); };
  mlir::Operation* op = value.getDefiningOp();
  if (op && llvm::isa<ir::ThreadsOp>(op))
    return true;
  if (auto sources = sourcesOf(value))
    return llvm::all_of(*sources, known);
  return op && op->getNumResults() == 1 && ir::isElementwise(op) &&
         llvm::all_of(op->getOperands(), [&](mlir::Value operand) { return !isTile(operand) || known(operand); });
}

bool isUsedByThreads(mlir::Value value, const Set& set) {
  return llvm::all_of(value.getUses(), [&](mlir::OpOperand& use) {
    mlir::Operation* op = use.getOwner();
    if (llvm::isa<ir::ThreadsOp>(op))
      return true;
    if (op->getNumResults() == 1 && op->getNumRegions() == 0 && ir::isElementwise(op))
      return set.contains(op->getResult(0));
    llvm::SmallVector<mlir::Value> targets = targetsOf(use);
    return !targets.empty() && llvm::all_of(targets, [&](mlir::Value target) { return set.contains(target); });
  });
}

}  // namespace

/// The largest set of tiles that threads make and that only threads and members use.
void Tiles::findPerThread(ir::KernelOp phase) {
  auto add = [&](mlir::Value value) {
    if (isVectorTile(value) && !isSplat(value))
      perThread_.insert(value);
  };
  phase->walk([&](mlir::Operation* op) {
    llvm::for_each(op->getResults(), add);
    for (mlir::Region& region : op->getRegions())
      for (mlir::Block& block : region)
        llvm::for_each(block.getArguments(), add);
  });
  for (bool changed = true; changed;) {
    llvm::SmallVector<mlir::Value> others;
    for (mlir::Value value : perThread_)
      if (!isMadeByThreads(value, perThread_) || !isUsedByThreads(value, perThread_))
        others.push_back(value);
    for (mlir::Value value : others)
      perThread_.erase(value);
    changed = !others.empty();
  }
}

/// `tile` is such a value, or a splat, which is made anew.
Values Tiles::perThreadValues(mlir::Value tile) {
  if (!perThread_.contains(tile))
    threads_.lower(tile.getDefiningOp());
  return threads_.threadValues(tile);
}

/// An elementwise operation on such values.
void Tiles::lowerPerThread(mlir::Operation* op) {
  for (mlir::Value operand : op->getOperands())
    if (isTile(operand))
      perThreadValues(operand);
  threads_.lower(op);
}

}  // namespace vortex::target::gpu::tiles
