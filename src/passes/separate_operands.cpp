#include "passes/separate_operands.h"

#include "mlir/IR/IRMapping.h"

namespace vortex::passes {

using namespace mlir;

namespace {

/// The operations between an operand and memory, producers first. Nothing where they do more than rearrange and compute elements.
std::optional<llvm::SetVector<Operation*>> slice(Value operand) {
  llvm::SetVector<Operation*> ops;
  bool plain = true;
  auto visit = [&](auto& self, Value value) -> void {
    Operation* op = value.getDefiningOp();
    if (!op || !isa<RankedTensorType>(value.getType()) || ops.contains(op))
      return;
    if (!isa<ir::TileLoadOp>(op)) {
      plain &= ir::isElementwise(op) ||
               isa<ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::ReshapeOp, arith::ConstantOp>(op);
      if (!plain)
        return;
      for (Value source : op->getOperands())
        self(self, source);
    }
    ops.insert(op);
  };
  visit(visit, operand);
  return plain ? std::optional(ops) : std::nullopt;
}

/// A copy of the slice, each operation beside its original: a load must not move past stores.
Value copySlice(Value operand, const llvm::SetVector<Operation*>& ops) {
  IRMapping copies;
  for (Operation* op : ops) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    builder.clone(*op, copies);
  }
  return copies.lookupOrDefault(operand);
}

}  // namespace

void separateOperands(ir::KernelOp kernel) {
  SmallVector<ir::DotOp> dots;
  kernel.walk([&](ir::DotOp dot) { dots.push_back(dot); });
  llvm::DenseSet<Operation*> taken;
  for (ir::DotOp dot : dots)
    for (OpOperand* operand : {&dot.getAMutable(), &dot.getBMutable()}) {
      auto ops = slice(operand->get());
      if (!ops)
        continue;
      if (llvm::any_of(*ops, [&](Operation* op) { return taken.contains(op); }))
        operand->set(copySlice(operand->get(), *ops));
      else
        taken.insert(ops->begin(), ops->end());
    }
}

}  // namespace vortex::passes
