#include "target/gpu/thread_tiles.h"

#include <mlir/IR/TypeUtilities.h>

namespace vortex::target::gpu {

static mlir::Attribute splatValue(mlir::arith::ConstantOp constant) {
  auto splat = mlir::dyn_cast<mlir::SplatElementsAttr>(constant.getValue());
  return splat ? splat.getSplatValue<mlir::Attribute>() : mlir::Attribute();
}

void ThreadTiles::lower(mlir::Operation* op) {
  auto isThreadTile = [](mlir::Type type) {
    auto tile = mlir::dyn_cast<mlir::RankedTensorType>(type);
    return tile && tile.getRank() == 1;
  };
  mlir::OpBuilder& b = lowering_.b;
  if (op->getNumResults() == 1 && isThreadTile(op->getResult(0).getType())) {
    Value result = op->getResult(0);
    mlir::Type element = mlir::getElementTypeOrSelf(result.getType());
    Values slots;
    if (auto broadcast = mlir::dyn_cast<ir::BroadcastOp>(op);
        broadcast && !isThreadTile(broadcast.getValue().getType())) {
      slots.assign(lowering_.slots(), lowering_.scalar(broadcast.getValue()));
      return bindThreadValues(result, slots);
    }
    if (auto constant = mlir::dyn_cast<mlir::arith::ConstantOp>(op); constant && splatValue(constant)) {
      Value value = b.create<mlir::arith::ConstantOp>(lowering_.loc, mlir::cast<mlir::TypedAttr>(splatValue(constant)));
      slots.assign(lowering_.slots(), value);
      return bindThreadValues(result, slots);
    }
    if (ir::isElementwise(op)) {
      llvm::SmallVector<Values> operands;
      for (Value operand : op->getOperands())
        operands.push_back(isThreadTile(operand.getType()) ? threadValues(operand)
                                                           : Values(lowering_.slots(), lowering_.scalar(operand)));
      for (unsigned slot = 0; slot < lowering_.slots(); ++slot) {
        Values inputs;
        for (const Values& operand : operands)
          inputs.push_back(operand[slot]);
        mlir::OperationState copy(lowering_.loc, op->getName(), inputs, {element}, op->getAttrs());
        slots.push_back(b.create(copy)->getResult(0));
      }
      return bindThreadValues(result, slots);
    }
  }
  lowering_.fail(op, "tile operations");
  for (Value result : op->getResults()) {
    Value poison = lowering_.zero(mlir::getElementTypeOrSelf(result.getType()));
    if (mlir::isa<mlir::RankedTensorType>(result.getType()))
      bindThreadValues(result, Values(lowering_.slots(), poison));
    else
      lowering_.setScalar(result, poison);
  }
}

Values ThreadTiles::threadValues(Value tile) {
  auto found = values_.find(tile);
  if (found != values_.end())
    return found->second;
  return Values(lowering_.slots(), lowering_.zero(mlir::getElementTypeOrSelf(tile.getType())));
}

}  // namespace vortex::target::gpu
