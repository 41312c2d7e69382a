#include "passes/narrow_operands.h"

#include "ir/product_marks.h"

namespace vortex::passes {

using namespace mlir;

namespace {

struct Narrow {
  Type element;
  bool isUnsigned = false;  ///< integers
};

bool isRearranged(Operation* op) { return isa<ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::ReshapeOp>(op); }

/// The narrowest type that all elements of `value` are widened from on its way.
std::optional<Narrow> narrowOf(Value value) {
  Operation* op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isRearranged(op))
    return narrowOf(op->getOperand(0));
  if (!isa<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    return std::nullopt;
  const bool isUnsigned = isa<arith::ExtUIOp>(op);
  std::optional<Narrow> before = narrowOf(op->getOperand(0));
  // A sign that was extended is none once zeros are put above it; zeros stay what they are.
  if (before && (before->isUnsigned || !isUnsigned))
    return before;
  return Narrow{getElementTypeOrSelf(op->getOperand(0).getType()), isUnsigned};
}

/// What units multiply that holds all numbers of both; null: there is none. Floats of 8 bits go as f16: units that take them drop bits of the sums.
Type commonType(Type a, Type b) {
  if (!isa<FloatType>(a))
    return a == b ? a : Type();
  const unsigned bitsA = a.getIntOrFloatBitWidth(), bitsB = b.getIntOrFloatBitWidth();
  if (bitsA == 8 && bitsB == 8)
    return Float16Type::get(a.getContext());
  return a == b || bitsB == 8 ? a : bitsA == 8 ? b : Type();
}

void narrow(ir::DotOp dot) {
  const Type wide = getElementTypeOrSelf(dot.getA().getType()), sums = getElementTypeOrSelf(dot.getType());
  std::optional<Narrow> a = narrowOf(dot.getA()), b = a ? narrowOf(dot.getB()) : std::nullopt;
  const Type common = b ? commonType(a->element, b->element) : Type();
  if (!common || common.getIntOrFloatBitWidth() < 8)
    return;
  // Sums of f64 have no products of narrower operands.
  const bool isFloat = isa<FloatType>(wide);
  if (isFloat && (!wide.isF32() || !sums.isF32() || dot->hasAttr(ir::kOperandsAsWritten)))
    return;
  OpBuilder builder(dot);
  const bool areSigned = !a->isUnsigned && !b->isUnsigned;
  for (auto [operand, from] : {std::pair(&dot.getAMutable(), *a), std::pair(&dot.getBMutable(), *b)}) {
    Value tile = beforeWidening(builder, operand->get(), from.element);
    auto type = cast<RankedTensorType>(tile.getType());
    if (isFloat && from.element != common)
      tile = builder.create<arith::ExtFOp>(dot.getLoc(), type.clone(common), tile);
    else if (from.isUnsigned)
      tile = builder.create<arith::ExtUIOp>(dot.getLoc(), type.clone(wide), tile);
    else if (!isFloat && !areSigned)
      tile = builder.create<arith::ExtSIOp>(dot.getLoc(), type.clone(wide), tile);
    operand->set(tile);
  }
  if (isFloat)
    dot->removeAttr("vx.tf32");
}

struct NarrowOperandsPass : PassWrapper<NarrowOperandsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NarrowOperandsPass)
  StringRef getArgument() const override { return "vx-narrow-operands"; }
  StringRef getDescription() const override { return "products widen their operands themselves"; }
  void runOnOperation() override { narrowOperands(getOperation()); }
};

}  // namespace

Value beforeWidening(OpBuilder& builder, Value value, Type element) {
  if (getElementTypeOrSelf(value.getType()) == element)
    return value;
  Operation* op = value.getDefiningOp();
  if (isa_and_nonnull<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    return beforeWidening(builder, op->getOperand(0), element);
  Value source = op && isRearranged(op) ? beforeWidening(builder, op->getOperand(0), element) : Value();
  if (!source)
    return {};
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  Operation* moved = builder.clone(*op);
  moved->setOperand(0, source);
  moved->getResult(0).setType(cast<RankedTensorType>(value.getType()).clone(element));
  return moved->getResult(0);
}

void convertBeforeRepeating(ir::KernelOp kernel) {
  const auto move = [](OpOperand& operand) {
    Operation* conversion = operand.get().getDefiningOp();
    if (!isa_and_nonnull<arith::TruncFOp, arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(conversion))
      return;
    auto repeated = conversion->getOperand(0).getDefiningOp<ir::BroadcastOp>();
    auto source = repeated ? dyn_cast<RankedTensorType>(repeated.getValue().getType()) : RankedTensorType();
    if (!source || source.getRank() < 2)
      return;
    OpBuilder builder(conversion);
    const Type element = getElementTypeOrSelf(operand.get().getType());
    Operation* before = builder.clone(*conversion);
    before->setOperand(0, repeated.getValue());
    before->getResult(0).setType(source.clone(element));
    Operation* after = builder.clone(*repeated);
    after->setOperand(0, before->getResult(0));
    after->getResult(0).setType(operand.get().getType());
    operand.set(after->getResult(0));
  };
  for (auto dot : kernel.getBody().front().getOps<ir::DotOp>())
    for (OpOperand* operand : {&dot.getAMutable(), &dot.getBMutable()})
      move(*operand);
}

void narrowOperands(ModuleOp module) {
  module.walk([](ir::DotOp dot) { narrow(dot); });
}

std::unique_ptr<Pass> createNarrowOperandsPass() { return std::make_unique<NarrowOperandsPass>(); }

}  // namespace vortex::passes
