#include "passes/plan/size_expression.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

static ir::SizeAttr binarySize(SizeOp op, Value lhs, Value rhs, SizeLeaf leaf) {
  ir::SizeAttr a = sizeExpression(lhs, leaf), b = sizeExpression(rhs, leaf);
  return a && b ? ir::sizeBinary(op, a, b) : nullptr;
}

/// Of numbers without a sign, as kernels compare extents; a launch sees those of 2^63 and more as negative.
static ir::SizeAttr unsignedExtreme(SizeOp op, Value lhs, Value rhs, SizeLeaf leaf) {
  ir::SizeAttr first = sizeExpression(lhs, leaf), second = sizeExpression(rhs, leaf);
  if (!first || !second)
    return nullptr;
  size::Expr a = first.getExpr(), b = second.getExpr();
  if (a.isNotNegative())
    std::swap(a, b);
  size::Expr made = size::make(op, a, b);
  size::Arena& arena = ir::sizeArena(first.getContext());
  if (!b.isNotNegative()) {
    const size::Expr half = arena.constant(INT64_MIN);
    const size::Expr isLess =
        size::make(SizeOp::Less, size::make(SizeOp::Add, a, half), size::make(SizeOp::Add, b, half));
    made = op == SizeOp::Min ? size::make(SizeOp::Select, isLess, a, b) : size::make(SizeOp::Select, isLess, b, a);
  } else if (!a.isNotNegative()) {  // a negative a is larger than b
    const size::Expr isFar = size::make(SizeOp::Less, a, arena.constant(0));
    made = size::make(SizeOp::Select, isFar, op == SizeOp::Min ? b : a, made);
  }
  return ir::SizeAttr::get(first.getContext(), made);
}

/// What loops over bounds that may be 2^63 or more count to.
static ir::SizeAttr selectedSize(arith::SelectOp select, SizeLeaf leaf) {
  ir::SizeAttr condition = conditionExpression(select.getCondition(), leaf),
               a = sizeExpression(select.getTrueValue(), leaf), b = sizeExpression(select.getFalseValue(), leaf);
  if (!condition || !a || !b)
    return nullptr;
  return ir::SizeAttr::get(select.getContext(),
                           size::make(SizeOp::Select, condition.getExpr(), a.getExpr(), b.getExpr()));
}

static ir::SizeAttr sizeOfOperation(Operation* op, SizeLeaf leaf) {
  if (auto dim = dyn_cast<ir::DimOp>(op)) {
    auto argument = dyn_cast<BlockArgument>(dim.getView());
    if (!argument || !isa<ir::KernelOp>(argument.getOwner()->getParentOp()))
      return nullptr;
    return ir::sizeDim(op->getContext(), argument.getArgNumber(), static_cast<unsigned>(dim.getDim()));
  }
  if (auto select = dyn_cast<arith::SelectOp>(op); select && select.getType().isIndex())
    return selectedSize(select, leaf);
  if (op->getNumOperands() == 1 && isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp, arith::ExtSIOp>(op))
    return sizeExpression(op->getOperand(0), leaf);
  if (op->getNumOperands() != 2)
    return nullptr;
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  if (isa<arith::AddIOp>(op))
    return binarySize(SizeOp::Add, lhs, rhs, leaf);
  if (isa<arith::SubIOp>(op))
    return binarySize(SizeOp::Sub, lhs, rhs, leaf);
  if (isa<arith::MulIOp>(op))
    return binarySize(SizeOp::Mul, lhs, rhs, leaf);
  if (isa<arith::MinSIOp>(op))
    return binarySize(SizeOp::Min, lhs, rhs, leaf);
  if (isa<arith::MaxSIOp>(op))
    return binarySize(SizeOp::Max, lhs, rhs, leaf);
  if (isa<arith::MinUIOp, arith::MaxUIOp>(op))
    return unsignedExtreme(isa<arith::MinUIOp>(op) ? SizeOp::Min : SizeOp::Max, lhs, rhs, leaf);
  if (auto total = dyn_cast<ir::IntOp>(op)) {
    switch (total.getKind()) {
    case ir::IntKind::DivU: return binarySize(SizeOp::FloorDiv, lhs, rhs, leaf);
    case ir::IntKind::RemU: return binarySize(SizeOp::Mod, lhs, rhs, leaf);
    case ir::IntKind::CeilDivU: return binarySize(SizeOp::CeilDiv, lhs, rhs, leaf);
    default: return nullptr;
    }
  }
  return nullptr;
}

ir::SizeAttr sizeExpression(OpFoldResult size, SizeLeaf leaf) {
  if (!size)
    return nullptr;
  if (auto attr = dyn_cast<Attribute>(size))
    return ir::sizeConstant(attr.getContext(), cast<IntegerAttr>(attr).getInt());
  Value value = cast<Value>(size);
  if (ir::SizeAttr known = leaf ? leaf(value) : ir::SizeAttr())
    return known;
  if (auto constant = getConstantIntValue(value))
    return ir::sizeConstant(value.getContext(), *constant);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (!isa<ir::KernelOp>(argument.getOwner()->getParentOp()) || !argument.getType().isIntOrIndex())
      return nullptr;
    return ir::sizeScalar(value.getContext(), argument.getArgNumber());
  }
  return sizeOfOperation(value.getDefiningOp(), leaf);
}

static bool isWide(Value value, SizeLeaf leaf) {
  Operation* op = value.getDefiningOp();
  if (!op || (leaf && leaf(value)) || isa<arith::ConstantOp, ir::DimOp>(op))
    return true;
  if (auto select = dyn_cast<arith::SelectOp>(op))  // its condition is compared as what it is
    return isWide(select.getTrueValue(), leaf) && isWide(select.getFalseValue(), leaf);
  const bool isCast =
      op->getNumOperands() == 1 && isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp, arith::ExtSIOp>(op);
  return (isCast || value.getType().isIndex() || value.getType().isInteger(64)) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isWide(operand, leaf); });
}

ir::SizeAttr wideExpression(Value value, SizeLeaf leaf) {
  return value.getType().isIntOrIndex() && isWide(value, leaf) ? sizeExpression(value, leaf) : nullptr;
}

static ir::SizeAttr comparison(arith::CmpIOp op, SizeLeaf leaf) {
  ir::SizeAttr a = wideExpression(op.getLhs(), leaf), b = wideExpression(op.getRhs(), leaf);
  if (!a || !b)
    return nullptr;
  auto less = [&](ir::SizeAttr x, ir::SizeAttr y, bool isUnsigned) {
    if (isUnsigned && !(x.getExpr().isNotNegative() && y.getExpr().isNotNegative())) {
      const ir::SizeAttr half = ir::sizeConstant(op.getContext(), INT64_MIN);
      x = ir::sizeBinary(SizeOp::Add, x, half);
      y = ir::sizeBinary(SizeOp::Add, y, half);
    }
    return ir::sizeBinary(SizeOp::Less, x, y);
  };
  auto isNot = [&](ir::SizeAttr x) { return ir::sizeBinary(SizeOp::Equal, x, ir::sizeConstant(op.getContext(), 0)); };
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::eq: return ir::sizeBinary(SizeOp::Equal, a, b);
  case arith::CmpIPredicate::ne: return isNot(ir::sizeBinary(SizeOp::Equal, a, b));
  case arith::CmpIPredicate::slt: return less(a, b, false);
  case arith::CmpIPredicate::sgt: return less(b, a, false);
  case arith::CmpIPredicate::sge: return isNot(less(a, b, false));
  case arith::CmpIPredicate::sle: return isNot(less(b, a, false));
  case arith::CmpIPredicate::ult: return less(a, b, true);
  case arith::CmpIPredicate::ugt: return less(b, a, true);
  case arith::CmpIPredicate::uge: return isNot(less(a, b, true));
  case arith::CmpIPredicate::ule: return isNot(less(b, a, true));
  }
  VORTEX_UNREACHABLE();
}

ir::SizeAttr conditionExpression(Value value, SizeLeaf leaf) {
  if (auto compare = value.getDefiningOp<arith::CmpIOp>())
    return comparison(compare, leaf);
  Operation* op = value.getDefiningOp();
  if (op && isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op)) {
    ir::SizeAttr a = conditionExpression(op->getOperand(0), leaf), b = conditionExpression(op->getOperand(1), leaf);
    if (!a || !b)
      return nullptr;
    if (isa<arith::XOrIOp>(op)) {
      ir::SizeAttr equal = ir::sizeBinary(SizeOp::Equal, a, b);
      return ir::sizeBinary(SizeOp::Equal, equal, ir::sizeConstant(value.getContext(), 0));
    }
    return ir::sizeBinary(isa<arith::AndIOp>(op) ? SizeOp::And : SizeOp::Or, a, b);
  }
  if (auto constant = getConstantIntValue(value))
    return ir::sizeConstant(value.getContext(), *constant != 0);
  return isa<BlockArgument>(value) ? sizeExpression(value, leaf) : nullptr;
}

}  // namespace vortex::passes
