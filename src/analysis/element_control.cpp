#include "analysis/element_control.h"

#include "ir/tile_sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace vortex::analysis {

using mlir::Operation;
using mlir::Value;

static bool isTile(Value value) { return llvm::isa<mlir::RankedTensorType>(value.getType()); }

/// The tiles among `values` have one shape, and there is one.
static bool haveOneShape(mlir::ValueRange values) {
  llvm::SmallVector<mlir::OpFoldResult> shape;
  bool any = false;
  for (Value value : values) {
    if (!isTile(value))
      continue;
    llvm::SmallVector<mlir::OpFoldResult> own = ir::tileSizes(value);
    if (any && own.size() != shape.size())
      return false;
    for (auto [a, b] : llvm::zip(own, shape))
      if (!ir::isSameSize(a, b))
        return false;
    shape = own;
    any = true;
  }
  return any;
}

/// Makes its tile at one element of its operands at the same one, without memory.
static bool isElementOperation(Operation* op) {
  if (ir::isElementwise(op) || llvm::isa<ir::IotaOp>(op))
    return true;
  if (auto broadcast = llvm::dyn_cast<ir::BroadcastOp>(op))
    return !isTile(broadcast.getValue());
  auto constant = llvm::dyn_cast<mlir::arith::ConstantOp>(op);
  return constant && llvm::isa<mlir::SplatElementsAttr>(constant.getValue());
}

static bool isElementBody(mlir::Block& block, llvm::function_ref<bool(Operation*)> isOutside);

static bool isControl(Operation* op, llvm::function_ref<bool(Operation*)> isOutside) {
  if (!llvm::isa<mlir::scf::ForOp, mlir::scf::WhileOp, mlir::scf::IfOp>(op) || !haveOneShape(op->getResults()))
    return false;
  for (mlir::Region& region : op->getRegions())
    if (region.empty() || !isElementBody(region.front(), isOutside))
      return false;
  return true;
}

static bool isElementBody(mlir::Block& block, llvm::function_ref<bool(Operation*)> isOutside) {
  for (Operation& op : block.without_terminator()) {
    if (isOutside(&op))
      continue;
    const bool makesTiles = llvm::any_of(op.getResults(), isTile);
    bool touchesTiles = makesTiles || llvm::any_of(op.getOperands(), isTile);
    op.walk([&](Operation* inner) { touchesTiles |= llvm::any_of(inner->getOperands(), isTile); });
    if (!touchesTiles             ? !mlir::isMemoryEffectFree(&op)
        : op.getNumRegions() != 0 ? !isControl(&op, isOutside)
                                  : !makesTiles || !isElementOperation(&op))
      return false;
  }
  return true;
}

bool isElementControl(Operation* control, llvm::function_ref<bool(Operation*)> isOutside) {
  return isControl(control, isOutside) &&
         llvm::all_of(control->getResults(), [](Value result) { return isTile(result) || result.use_empty(); });
}

void forEachOuterTile(Operation* control, llvm::function_ref<void(Value)> visit) {
  control->walk([&](Operation* op) {
    for (Value operand : op->getOperands()) {
      mlir::Region* home = operand.getParentRegion();
      if (isTile(operand) && !control->isAncestor(home->getParentOp()))
        visit(operand);
    }
  });
}

}  // namespace vortex::analysis
