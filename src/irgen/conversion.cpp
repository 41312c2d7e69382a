// Casts between scalar kinds, on scalars and tiles.
#include "irgen/arithmetic.h"

#include "ir/index_cast.h"

namespace vortex::irgen {

using lang::Scalar;
using mlir::Location;
using mlir::Type;
using mlir::Value;
namespace arith = mlir::arith;

namespace {

Type intType(mlir::OpBuilder& b, Scalar scalar) {
  return b.getIntegerType(scalar == Scalar::Bool ? 1 : bitWidth(scalar));
}

Type floatType(mlir::OpBuilder& b, Scalar scalar) {
  switch (scalar) {
  case Scalar::F8E4M3: return b.getFloat8E4M3FNType();
  case Scalar::F8E5M2: return b.getFloat8E5M2Type();
  case Scalar::F16: return b.getF16Type();
  case Scalar::BF16: return b.getBF16Type();
  case Scalar::F64: return b.getF64Type();
  default: return b.getF32Type();
  }
}

bool isSignedInt(Scalar scalar) { return isInteger(scalar) && !isUnsigned(scalar); }

/// Between integer types of given widths; index only as `from` or `to` 64 bits wide has been handled before.
Value resize(mlir::OpBuilder& b, Location loc, Value value, uint32_t from, uint32_t to, bool isSigned) {
  Type type = withElement(value.getType(), b.getIntegerType(to));
  if (from == to)
    return value;
  if (from > to)
    return b.create<arith::TruncIOp>(loc, type, value);
  return isSigned ? Value(b.create<arith::ExtSIOp>(loc, type, value))
                  : Value(b.create<arith::ExtUIOp>(loc, type, value));
}

/// f16, bf16 and the f8 types convert to each other through f32, which holds all of them exactly.
Value convertFloat(mlir::OpBuilder& b, Location loc, Value value, Scalar from, Scalar to) {
  Type type = withElement(value.getType(), floatType(b, to));
  uint32_t fromWidth = bitWidth(from), toWidth = bitWidth(to);
  if (toWidth >= 32 && fromWidth < toWidth)
    return b.create<arith::ExtFOp>(loc, type, value);
  if (fromWidth >= 32 && toWidth < fromWidth)
    return b.create<arith::TruncFOp>(loc, type, value);
  return convertFloat(b, loc, convertFloat(b, loc, value, from, Scalar::F32), Scalar::F32, to);
}

}  // namespace

Value Arithmetic::toIndex(Location loc, Value value, Scalar from) const {
  if (from == Scalar::Usize)
    return value;
  Type type = withElement(value.getType(), b_.getIndexType());
  if (isSignedInt(from))
    return b_.create<arith::IndexCastOp>(loc, type, value);
  return b_.create<arith::IndexCastUIOp>(loc, type, value);
}

Value Arithmetic::fromIndex(Location loc, Value value, Scalar to) const {
  if (to == Scalar::Usize)
    return value;
  if (isFloat(to))
    return cast(loc, value, Scalar::Usize, to);
  return ir::fromIndex(b_, loc, withElement(value.getType(), intType(b_, to)), value);
}

Value Arithmetic::reinterpret(Location loc, Value value, Scalar to) const {
  Type type = isFloat(to) ? floatType(b_, to) : intType(b_, to);
  return b_.create<arith::BitcastOp>(loc, withElement(value.getType(), type), value);
}

Value Arithmetic::cast(Location loc, Value value, Scalar from, Scalar to) const {
  if (from == to)
    return value;
  if (isFloat(from)) {
    if (isFloat(to))
      return convertFloat(b_, loc, value, from, to);
    if (to == Scalar::Bool)
      return binary(loc, lang::BinaryOp::Ne, from, value, constantLike(loc, value, 0));
    bool isU = isUnsigned(to);
    auto result = b_.create<ir::FloatToIntOp>(loc, withElement(value.getType(), intType(b_, to)), value, isU);
    return to == Scalar::Usize ? toIndex(loc, result, Scalar::U64) : Value(result);
  }
  if (to == Scalar::Bool)
    return binary(loc, lang::BinaryOp::Ne, from, value, constantLike(loc, value, 0));
  if (isFloat(to)) {
    if (from == Scalar::Usize)
      value = fromIndex(loc, value, Scalar::U64);
    Type type = withElement(value.getType(), floatType(b_, to));
    if (isSignedInt(from))
      return b_.create<arith::SIToFPOp>(loc, type, value);
    return b_.create<arith::UIToFPOp>(loc, type, value);
  }
  if (to == Scalar::Usize)
    return toIndex(loc, value, from);
  if (from == Scalar::Usize)
    return fromIndex(loc, value, to);
  uint32_t width = from == Scalar::Bool ? 1 : bitWidth(from);
  return resize(b_, loc, value, width, bitWidth(to), isSignedInt(from));
}

}  // namespace vortex::irgen
