// Control flow that every element runs by itself, in registers, inside the nest that needs its results.
#include "analysis/element_control.h"
#include "target/gpu/tiles/tiles_state.h"

#include <mlir/Dialect/SCF/IR/SCF.h>

namespace vortex::target::gpu::tiles {

namespace scf = mlir::scf;

/// Only stores need it, at the element that they write: it runs once.
static bool isStoredOnly(mlir::Value tile) {
  return llvm::all_of(tile.getUsers(), [&](mlir::Operation* user) {
    if (user->getBlock() != tile.getParentBlock())
      return false;
    if (llvm::isa<ir::TileStoreOp>(user))
      return true;
    return ir::isElementwise(user) && user->getNumResults() == 1 && isStoredOnly(user->getResult(0));
  });
}

void Tiles::markPerElement(mlir::Operation* phase) {
  phase->walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation* op) {
    auto isPlain = [&](mlir::Value result) {
      return !isTile(result) || (!perThread_.contains(result) && isStoredOnly(result));
    };
    if (!llvm::isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op) || !analysis::isElementControl(op) ||
        !llvm::all_of(op->getResults(), isPlain))
      return mlir::WalkResult::advance();
    op->setAttr(kPerElement, mlir::UnitAttr::get(op->getContext()));
    return mlir::WalkResult::skip();
  });
}

Value Evaluator::evalControl(mlir::OpResult tile, const At& at) {
  Values values = emitControl(tile.getOwner(), at);
  for (auto [result, value] : llvm::zip(tile.getOwner()->getResults(), values))
    if (isTile(result) && result != tile)
      remember(result, at, value);
  return values[tile.getResultNumber()];
}

/// One value per result.
Values Evaluator::emitControl(mlir::Operation* op, const At& at) {
  if (auto loop = llvm::dyn_cast<scf::ForOp>(op))
    return emitFor(loop, at);
  if (auto branch = llvm::dyn_cast<scf::IfOp>(op))
    return emitIf(branch, at);
  return emitWhile(llvm::cast<scf::WhileOp>(op), at);
}

void Evaluator::give(mlir::ValueRange targets, mlir::ValueRange values, const At& at) {
  for (auto [target, value] : llvm::zip(targets, values))
    if (isTile(target))
      remember(target, at, value);
    else
      l.setScalar(target, value);
}

Values Evaluator::valuesAt(mlir::ValueRange sources, const At& at) {
  Values values;
  for (mlir::Value source : sources)
    values.push_back(isTile(source) ? eval(source, at) : l.scalar(source));
  return values;
}

/// The values of `results` after the operations of a block with these arguments. Tiles are computed where they are needed.
Values Evaluator::emitBody(mlir::Block& block, mlir::ValueRange given, mlir::ValueRange results, const At& at) {
  give(block.getArguments(), given, at);
  for (mlir::Operation& op : block.without_terminator()) {
    if (llvm::none_of(op.getOperands(), isTile) && llvm::none_of(op.getResults(), isTile))
      l.lowerOp(&op);
    else if (op.getNumRegions() != 0)
      give(op.getResults(), emitControl(&op, at), at);
  }
  return valuesAt(results, at);
}

Values Evaluator::emitFor(scf::ForOp op, const At& at) {
  Values initial = valuesAt(op.getInitArgs(), at);
  return l.emitFor(l.scalar(op.getLowerBound()), l.scalar(op.getUpperBound()), l.scalar(op.getStep()), initial,
                   [&](Value iteration, mlir::ValueRange carried) {
                     Frame frame(*this);
                     Values given{iteration};
                     given.append(carried.begin(), carried.end());
                     return emitBody(*op.getBody(), given, op.getYieldedValues(), at);
                   });
}

Values Evaluator::emitIf(scf::IfOp op, const At& at) {
  auto side = [&](mlir::Block* block) {
    Frame frame(*this);
    return emitBody(*block, {}, block->getTerminator()->getOperands(), at);
  };
  return l.emitIf(
      l.scalar(op.getCondition()), [&] { return side(op.thenBlock()); }, [&] { return side(op.elseBlock()); });
}

Values Evaluator::emitWhile(scf::WhileOp op, const At& at) {
  auto typesOf = [&](mlir::ValueRange values) {
    llvm::SmallVector<mlir::Type> types;
    for (mlir::Value value : values)
      types.push_back(isTile(value) ? valueType(elementType(value), at.lanes) : value.getType());
    return types;
  };
  Values initial = valuesAt(op.getInits(), at);
  auto loop = l.b.create<scf::WhileOp>(
      l.loc, typesOf(op.getResults()), initial,
      [&](mlir::OpBuilder&, mlir::Location loc, mlir::ValueRange carried) {
        Frame frame(*this);
        scf::ConditionOp condition = op.getConditionOp();
        Values forwarded = emitBody(*op.getBeforeBody(), carried, condition.getArgs(), at);
        l.b.create<scf::ConditionOp>(loc, l.scalar(condition.getCondition()), forwarded);
      },
      [&](mlir::OpBuilder&, mlir::Location loc, mlir::ValueRange carried) {
        Frame frame(*this);
        l.b.create<scf::YieldOp>(loc, emitBody(*op.getAfterBody(), carried, op.getYieldOp().getOperands(), at));
      });
  return Values(loop.getResults());
}

}  // namespace vortex::target::gpu::tiles
