// Arithmetic that upstream lacks: verifiers and constant folding.
#include "ir/vx.h"

#include "mlir/Dialect/CommonFolders.h"

namespace vortex::ir {

using llvm::APInt;
using mlir::LogicalResult;
using mlir::success;
using mlir::Type;

LogicalResult IntOp::verify() {
  Type element = mlir::getElementTypeOrSelf(getResult().getType());
  if (!element.isSignlessInteger() && !element.isIndex())
    return emitOpError() << "works on integers, not " << element;
  return success();
}

static APInt evaluate(IntKind kind, const APInt& lhs, const APInt& rhs) {
  unsigned width = lhs.getBitWidth();
  APInt zero = APInt::getZero(width);
  // Modulo in a width that holds `width` itself: APInt would truncate it.
  auto shift = unsigned(rhs.zextOrTrunc(64).getZExtValue() % width);
  switch (kind) {
  case IntKind::DivS: return rhs.isZero() ? zero : lhs.sdiv(rhs);
  case IntKind::DivU: return rhs.isZero() ? zero : lhs.udiv(rhs);
  case IntKind::RemS: return rhs.isZero() ? zero : lhs.srem(rhs);
  case IntKind::RemU: return rhs.isZero() ? zero : lhs.urem(rhs);
  case IntKind::Shl: return lhs.shl(shift);
  case IntKind::ShrS: return lhs.ashr(shift);
  case IntKind::ShrU: return lhs.lshr(shift);
  case IntKind::CeilDivU: return rhs.isZero() ? zero : lhs.urem(rhs).isZero() ? lhs.udiv(rhs) : lhs.udiv(rhs) + 1;
  }
  VORTEX_UNREACHABLE("integer kind");
}

mlir::OpFoldResult IntOp::fold(FoldAdaptor adaptor) {
  IntKind kind = getKind();
  bool isDivision = kind == IntKind::DivS || kind == IntKind::DivU || kind == IntKind::CeilDivU;
  bool isShift = kind == IntKind::Shl || kind == IntKind::ShrS || kind == IntKind::ShrU;
  if (auto rhs = llvm::dyn_cast_or_null<mlir::IntegerAttr>(adaptor.getRhs()))
    if ((isDivision && rhs.getValue().isOne() && rhs.getValue().getBitWidth() > 1) ||
        (isShift && rhs.getValue().isZero()))
      return getLhs();
  return mlir::constFoldBinaryOp<mlir::IntegerAttr>(
      adaptor.getOperands(), getType(),
      [kind](const APInt& lhs, const APInt& rhs) { return evaluate(kind, lhs, rhs); });
}

LogicalResult FloatToIntOp::verify() {
  Type from = mlir::getElementTypeOrSelf(getValue().getType()), to = mlir::getElementTypeOrSelf(getResult().getType());
  if (!llvm::isa<mlir::FloatType>(from) || !(to.isSignlessInteger() || to.isIndex()))
    return emitOpError() << "converts floats to integers, not " << from << " to " << to;
  return success();
}

mlir::OpFoldResult FloatToIntOp::fold(FoldAdaptor adaptor) {
  auto value = llvm::dyn_cast_or_null<mlir::FloatAttr>(adaptor.getValue());
  if (!value || !llvm::isa<mlir::IntegerType, mlir::IndexType>(getType()))
    return {};
  unsigned width = getType().isIndex() ? 64 : getType().getIntOrFloatBitWidth();
  // APFloat saturates out-of-range values and turns NaN into 0, as the op does.
  llvm::APSInt result(width, getIsUnsigned());
  bool exact = false;
  value.getValue().convertToInteger(result, llvm::APFloat::rmTowardZero, &exact);
  return mlir::IntegerAttr::get(getType(), result);
}

}  // namespace vortex::ir
