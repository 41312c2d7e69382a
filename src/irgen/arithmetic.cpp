#include "irgen/arithmetic.h"

#include "ir/combine.h"
#include "ir/tile_sizes.h"
#include "lang/sema/types.h"

namespace vortex::irgen {

using lang::BinaryOp;
using lang::Scalar;
using mlir::Location;
using mlir::Type;
using mlir::Value;
namespace arith = mlir::arith;

Type withElement(Type like, Type element) {
  if (auto tile = llvm::dyn_cast<mlir::RankedTensorType>(like))
    return tile.clone(element);
  return element;
}

ir::Combine addCombine(Scalar kind) { return isFloat(kind) ? ir::Combine::AddF : ir::Combine::AddI; }
ir::Combine mulCombine(Scalar kind) { return isFloat(kind) ? ir::Combine::MulF : ir::Combine::MulI; }
ir::Combine maxCombine(Scalar kind) {
  return isFloat(kind)                              ? ir::Combine::MaxF
         : isUnsigned(kind) || kind == Scalar::Bool ? ir::Combine::MaxU
                                                    : ir::Combine::MaxS;
}
ir::Combine minCombine(Scalar kind) {
  return isFloat(kind)                              ? ir::Combine::MinF
         : isUnsigned(kind) || kind == Scalar::Bool ? ir::Combine::MinU
                                                    : ir::Combine::MinS;
}

Value Arithmetic::integer(Location loc, Type type, __int128 value) const {
  auto bits = static_cast<unsigned __int128>(value);
  uint64_t words[2] = {static_cast<uint64_t>(bits), static_cast<uint64_t>(bits >> 64)};
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  llvm::APInt number = llvm::APInt(128, words).trunc(width);
  return b_.create<arith::ConstantOp>(loc, mlir::IntegerAttr::get(type, number));
}

Value Arithmetic::real(Location loc, Type type, double value) const {
  return b_.create<arith::ConstantOp>(loc, mlir::FloatAttr::get(type, value));
}

Value Arithmetic::index(Location loc, int64_t value) const { return b_.create<arith::ConstantIndexOp>(loc, value); }

Value Arithmetic::zero(Location loc, Type type) const {
  return b_.create<arith::ConstantOp>(loc, b_.getZeroAttr(type));
}

Value Arithmetic::constantLike(Location loc, Value like, double value) const {
  Type element = mlir::getElementTypeOrSelf(like.getType());
  Value scalar = llvm::isa<mlir::FloatType>(element) ? real(loc, element, value)
                                                     : integer(loc, element, static_cast<__int128>(value));
  auto tile = llvm::dyn_cast<mlir::RankedTensorType>(like.getType());
  if (!tile)
    return scalar;
  llvm::SmallVector<Value> sizes, all = ir::tileSizeValues(b_, loc, like);
  for (int64_t i = 0; i < tile.getRank(); ++i)
    if (tile.isDynamicDim(i)) {
      VORTEX_CHECK(all[i], "extent of a tile is unknown");
      sizes.push_back(all[i]);
    }
  return b_.create<ir::BroadcastOp>(loc, tile, scalar, llvm::ArrayRef<int64_t>{}, sizes);
}

Value Arithmetic::vxInt(Location loc, ir::IntKind kind, Value lhs, Value rhs) const {
  return b_.create<ir::IntOp>(loc, lhs.getType(), kind, lhs, rhs);
}

Value Arithmetic::multiply(Location loc, bool isFloat, Value lhs, Value rhs) const {
  if (isFloat)
    return b_.create<arith::MulFOp>(loc, lhs, rhs, flags_);
  return b_.create<arith::MulIOp>(loc, lhs, rhs);
}

Value Arithmetic::compare(Location loc, BinaryOp op, Scalar kind, Value lhs, Value rhs) const {
  if (isFloat(kind)) {
    auto predicate = op == BinaryOp::Eq   ? arith::CmpFPredicate::OEQ
                     : op == BinaryOp::Ne ? arith::CmpFPredicate::UNE
                     : op == BinaryOp::Lt ? arith::CmpFPredicate::OLT
                     : op == BinaryOp::Le ? arith::CmpFPredicate::OLE
                     : op == BinaryOp::Gt ? arith::CmpFPredicate::OGT
                                          : arith::CmpFPredicate::OGE;
    return b_.create<arith::CmpFOp>(loc, predicate, lhs, rhs);
  }
  bool isU = isUnsigned(kind) || kind == Scalar::Bool;
  auto predicate = op == BinaryOp::Eq   ? arith::CmpIPredicate::eq
                   : op == BinaryOp::Ne ? arith::CmpIPredicate::ne
                   : op == BinaryOp::Lt ? (isU ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt)
                   : op == BinaryOp::Le ? (isU ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle)
                   : op == BinaryOp::Gt ? (isU ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt)
                                        : (isU ? arith::CmpIPredicate::uge : arith::CmpIPredicate::sge);
  return b_.create<arith::CmpIOp>(loc, predicate, lhs, rhs);
}

Value Arithmetic::binary(Location loc, BinaryOp op, Scalar kind, Value lhs, Value rhs) const {
  bool isF = isFloat(kind), isU = isUnsigned(kind);
  switch (op) {
  case BinaryOp::Add:
    return isF ? Value(b_.create<arith::AddFOp>(loc, lhs, rhs, flags_))
               : Value(b_.create<arith::AddIOp>(loc, lhs, rhs));
  case BinaryOp::Sub:
    return isF ? Value(b_.create<arith::SubFOp>(loc, lhs, rhs, flags_))
               : Value(b_.create<arith::SubIOp>(loc, lhs, rhs));
  case BinaryOp::Mul: return multiply(loc, isF, lhs, rhs);
  case BinaryOp::Div:
    if (isF)
      return b_.create<arith::DivFOp>(loc, lhs, rhs, flags_);
    return vxInt(loc, isU ? ir::IntKind::DivU : ir::IntKind::DivS, lhs, rhs);
  case BinaryOp::Rem:
    if (isF)
      return b_.create<arith::RemFOp>(loc, lhs, rhs, flags_);
    return vxInt(loc, isU ? ir::IntKind::RemU : ir::IntKind::RemS, lhs, rhs);
  case BinaryOp::Pow: return power(loc, lhs, kind, rhs);
  case BinaryOp::Shl: return vxInt(loc, ir::IntKind::Shl, lhs, rhs);
  case BinaryOp::Shr: return vxInt(loc, isU ? ir::IntKind::ShrU : ir::IntKind::ShrS, lhs, rhs);
  case BinaryOp::BitAnd:
  case BinaryOp::And: return b_.create<arith::AndIOp>(loc, lhs, rhs);
  case BinaryOp::BitOr:
  case BinaryOp::Or: return b_.create<arith::OrIOp>(loc, lhs, rhs);
  case BinaryOp::BitXor: return b_.create<arith::XOrIOp>(loc, lhs, rhs);
  case BinaryOp::Eq:
  case BinaryOp::Ne:
  case BinaryOp::Lt:
  case BinaryOp::Le:
  case BinaryOp::Gt:
  case BinaryOp::Ge: return compare(loc, op, kind, lhs, rhs);
  }
  VORTEX_UNREACHABLE("binary operator");
}

Value Arithmetic::unary(Location loc, lang::UnaryOp op, Scalar kind, Value value) const {
  if (op == lang::UnaryOp::Not)
    return b_.create<arith::XOrIOp>(loc, value, constantLike(loc, value, kind == Scalar::Bool ? 1 : -1));
  if (isFloat(kind))
    return b_.create<arith::NegFOp>(loc, value, flags_);
  return b_.create<arith::SubIOp>(loc, constantLike(loc, value, 0), value);
}

Value Arithmetic::combine(Location loc, ir::Combine kind, Value lhs, Value rhs) const {
  return ir::createCombine(b_, loc, kind, lhs, rhs, flags_);
}

//===-- powers ----------------------------------------------------------------------------------------------------===//

Value Arithmetic::constantPower(Location loc, Value base, uint64_t exponent, bool isFloat) const {
  Value result;
  for (Value square = base; exponent; exponent >>= 1) {
    if (exponent & 1)
      result = result ? multiply(loc, isFloat, result, square) : square;
    if (exponent > 1)
      square = multiply(loc, isFloat, square, square);
  }
  return result ? result : constantLike(loc, base, 1);
}

/// Squaring without branches, so that it serves tiles too; the exponent is read as unsigned.
Value Arithmetic::intPower(Location loc, Value base, Value exponent, uint32_t width) const {
  Value result = constantLike(loc, base, 1), one = result, zero = constantLike(loc, base, 0);
  Value square = base;
  for (uint32_t bit = 0; bit < width; ++bit) {
    Value shifted = bit ? vxInt(loc, ir::IntKind::ShrU, exponent, constantLike(loc, exponent, bit)) : exponent;
    Value low = b_.create<arith::AndIOp>(loc, shifted, one);
    Value isSet = b_.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, low, zero);
    Value product = b_.create<arith::MulIOp>(loc, result, square);
    result = b_.create<arith::SelectOp>(loc, isSet, product, result);
    if (bit + 1 < width)
      square = b_.create<arith::MulIOp>(loc, square, square);
  }
  return result;
}

/// 1 or -1: of other integers `1 / base ** n` is 0.
Value Arithmetic::isUnit(Location loc, Value base) const {
  Value one = constantLike(loc, base, 1);
  Value isOne = b_.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, base, one);
  Value isMinusOne = b_.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, base, constantLike(loc, base, -1));
  return b_.create<arith::OrIOp>(loc, isOne, isMinusOne);
}

Value Arithmetic::power(Location loc, Value base, Scalar kind, Value exponent) const {
  mlir::Operation* definition = exponent.getDefiningOp();
  if (auto broadcast = llvm::dyn_cast_or_null<ir::BroadcastOp>(definition))
    definition = broadcast.getValue().getDefiningOp();
  auto constant = llvm::dyn_cast_or_null<arith::ConstantOp>(definition);
  if (isFloat(kind)) {
    auto number = constant ? llvm::dyn_cast<mlir::FloatAttr>(constant.getValue()) : mlir::FloatAttr();
    double value = number ? number.getValueAsDouble() : 0.5;
    // Up to the fourth power products are as accurate as the function, and much faster.
    if (value == static_cast<int>(value) && value >= 0 && value <= 4)
      return constantPower(loc, base, static_cast<uint64_t>(value), true);
    if (value == -1 || value == -2) {
      Value positive = constantPower(loc, base, static_cast<uint64_t>(-value), true);
      return b_.create<arith::DivFOp>(loc, constantLike(loc, base, 1), positive, flags_);
    }
    return b_.create<mlir::math::PowFOp>(loc, base, exponent, flags_);
  }
  if (auto number = constant ? llvm::dyn_cast<mlir::IntegerAttr>(constant.getValue()) : mlir::IntegerAttr()) {
    if (isUnsigned(kind) || !number.getValue().isNegative())
      return constantPower(loc, base, number.getValue().getZExtValue(), false);
    return b_.create<arith::SelectOp>(loc, isUnit(loc, base),
                                      constantPower(loc, base, number.getValue()[0] ? 1 : 2, false),
                                      constantLike(loc, base, 0));
  }
  Value result = intPower(loc, base, exponent, bitWidth(kind));
  if (isUnsigned(kind))
    return result;
  Value zero = constantLike(loc, base, 0);
  Value isNegative = b_.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, exponent, zero);
  Value reciprocal = b_.create<arith::SelectOp>(loc, isUnit(loc, base), result, zero);
  return b_.create<arith::SelectOp>(loc, isNegative, reciprocal, result);
}

}  // namespace vortex::irgen
