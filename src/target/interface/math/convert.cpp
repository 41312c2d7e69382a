// f8 formats are computed in integer arithmetic through f32's bit pattern; bf16 is the upper half of f32. f16 uses
// fpext/fptrunc where the hardware converts, and integer arithmetic where LLVM would call a compiler-runtime function.
#include "target/interface/math/convert.h"

#include <cmath>

#include "base/check.h"
#include "target/interface/math/float_code.h"

namespace vortex::target::math {
namespace {

using llvm::Value;

/// A format of `exponentBits` and `mantissaBits` as stored in the low bits of an integer.
struct Layout {
  uint32_t exponentBits, mantissaBits;
  uint32_t largestFinite;  ///< bits of the largest finite value
  uint32_t nan;            ///< bits of NaN without sign
  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  uint32_t width() const { return 1 + exponentBits + mantissaBits; }
};

Layout layoutOf(Narrow format) {
  switch (format) {
  case Narrow::F16: return {5, 10, 0x7bff, 0x7e00};
  case Narrow::BF16: return {8, 7, 0x7f7f, 0x7fc0};
  case Narrow::F8E4M3: return {4, 3, 0x7e, 0x7f};  // no infinity, one NaN
  case Narrow::F8E5M2: return {5, 2, 0x7b, 0x7e};
  }
  VORTEX_UNREACHABLE("no such format");
}

/// Multiplying the shifted bits by 2^(127 − bias) renormalises subnormals too; then NaN and infinity are put right.
Value* widenGeneric(const FloatCode& code, const Layout& layout, bool hasInfinity, Value* bits) {
  llvm::IRBuilderBase& b = code.b;
  Value* wide = b.CreateZExt(bits, code.intType);
  const uint32_t signBit = layout.width() - 1;
  Value* magnitude = b.CreateAnd(wide, code.ci((1 << signBit) - 1));
  Value* sign = b.CreateShl(b.CreateAnd(wide, code.ci(1 << signBit)), code.ci(31 - signBit));
  Value* value = code.fromBits(b.CreateShl(magnitude, code.ci(23 - layout.mantissaBits)));
  value = code.mul(value, code.c(std::ldexp(1.0, 127 - layout.bias())));
  if (hasInfinity) {
    const uint32_t infinity = layout.nan & ~((1u << layout.mantissaBits) - 1);
    value = b.CreateSelect(b.CreateICmpEQ(magnitude, code.ci(infinity)), code.infinity(), value);
    value = b.CreateSelect(b.CreateICmpUGT(magnitude, code.ci(infinity)), code.nan(), value);
  } else {
    value = b.CreateSelect(b.CreateICmpEQ(magnitude, code.ci(layout.nan)), code.nan(), value);
  }
  return code.fromBits(b.CreateOr(code.bits(value), sign));
}

/// Normal results: add half a unit minus one plus the kept bit's parity, shift, rebias. Subnormal results: adding a
/// power of two whose unit in the last place is the format's smallest subnormal makes the float adder do the rounding.
Value* narrowGeneric(const FloatCode& code, const Layout& layout, Value* value, llvm::Type* resultType) {
  llvm::IRBuilderBase& b = code.b;
  const uint32_t drop = 23 - layout.mantissaBits;
  const int minExponent = 1 - layout.bias();
  Value* bits = code.bits(value);
  Value* sign = b.CreateShl(b.CreateLShr(bits, code.ci(31)), code.ci(layout.width() - 1));
  Value* magnitude = b.CreateAnd(bits, code.ci(0x7fffffff));
  Value* parity = b.CreateAnd(b.CreateLShr(magnitude, code.ci(drop)), code.ci(1));
  Value* rounded = b.CreateAdd(b.CreateAdd(magnitude, parity), code.ci((1 << (drop - 1)) - 1));
  Value* normal =
      b.CreateSub(b.CreateLShr(rounded, code.ci(drop)), code.ci((127 - layout.bias()) << layout.mantissaBits));
  const double magic = std::ldexp(1.0, minExponent - static_cast<int>(layout.mantissaBits) + 23);
  Value* magicBits = code.bits(code.c(magic));
  Value* subnormal = b.CreateSub(code.bits(code.add(code.fromBits(magnitude), code.c(magic))), magicBits);
  Value* isSubnormal = b.CreateICmpSLT(magnitude, code.ci(int64_t(127 + minExponent) << 23));
  Value* result = b.CreateSelect(isSubnormal, subnormal, normal);
  // After the largest finite value comes infinity, or the only NaN.
  result =
      b.CreateSelect(b.CreateICmpSGT(result, code.ci(layout.largestFinite)), code.ci(layout.largestFinite + 1), result);
  result = b.CreateSelect(b.CreateICmpSGT(magnitude, code.ci(0x7f800000)), code.ci(layout.nan), result);
  return b.CreateTrunc(b.CreateOr(result, sign), resultType);
}

/// f64 → f32, inexact results given an odd last bit: rounding that to fewer bits equals rounding the f64 once.
Value* roundToOdd(llvm::IRBuilderBase& b, Value* value) {
  const FloatCode wide(b, value->getType()), code(b, withScalar(value->getType(), b.getFloatTy()));
  Value* nearest = b.CreateFPTrunc(value, code.type);
  Value* back = b.CreateFPExt(nearest, wide.type);
  Value* bits = code.bits(nearest);
  Value* away = b.CreateFCmpOGT(wide.abs(back), wide.abs(value));
  Value* odd = b.CreateOr(b.CreateSub(bits, b.CreateZExt(away, code.intType)), code.ci(1));
  return code.fromBits(b.CreateSelect(b.CreateFCmpONE(back, value), odd, bits));
}

Value* narrowBf16(const FloatCode& code, Value* value, llvm::Type* resultType) {
  llvm::IRBuilderBase& b = code.b;
  Value* bits = code.bits(value);
  Value* parity = b.CreateAnd(b.CreateLShr(bits, code.ci(16)), code.ci(1));
  Value* rounded = b.CreateLShr(b.CreateAdd(b.CreateAdd(bits, parity), code.ci(0x7fff)), code.ci(16));
  Value* quiet = b.CreateOr(b.CreateLShr(bits, code.ci(16)), code.ci(0x40));
  return b.CreateTrunc(b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, rounded), resultType);
}

/// x86 divides integers one at a time. A float with enough bits gives the same quotient: x / y is at least
/// 1 / y away from the next integer, which is more than the rounding error.
Value* emitFloatQuotient(llvm::IRBuilderBase& b, Value* x, Value* y, bool isSigned) {
  llvm::Type* type = x->getType();
  const bool isNarrow = type->getScalarSizeInBits() <= 16;  // 24 bits suffice for 16, 53 for 32
  const FloatCode code(b, withScalar(type, isNarrow ? b.getFloatTy() : b.getDoubleTy()));
  llvm::Type* wide = withScalar(type, b.getInt32Ty());  // the narrowest integer the hardware converts
  if (isSigned) {
    Value* quotient =
        code.div(b.CreateSIToFP(b.CreateSExt(x, wide), code.type), b.CreateSIToFP(b.CreateSExt(y, wide), code.type));
    return b.CreateTrunc(b.CreateFPToSI(quotient, wide), type);
  }
  Value* quotient =
      code.div(b.CreateUIToFP(b.CreateZExt(x, wide), code.type), b.CreateUIToFP(b.CreateZExt(y, wide), code.type));
  return b.CreateTrunc(b.CreateFPToUI(quotient, wide), type);
}

Value* emitDivide(llvm::IRBuilderBase& b, IntOp op, Value* x, Value* y, bool isSigned) {
  llvm::Type* type = x->getType();
  auto constant = [&](int64_t value) {
    return llvm::ConstantInt::get(type, static_cast<uint64_t>(value), /*isSigned=*/true);
  };
  Value* isZero = b.CreateICmpEQ(y, constant(0));
  Value* isSpecial = isZero;
  Value* special = constant(0);
  if (isSigned) {  // MIN / −1 traps on x86: x / −1 is −x, x % −1 is 0
    Value* isMinusOne = b.CreateICmpEQ(y, constant(-1));
    isSpecial = b.CreateOr(isZero, isMinusOne);
    if (op == IntOp::Div)
      special = b.CreateSelect(isMinusOne, b.CreateNeg(x), constant(0));
  }
  Value* divisor = b.CreateSelect(isSpecial, constant(1), y);
  if (type->isVectorTy() && type->getScalarSizeInBits() <= 32 && !llvm::isa<llvm::Constant>(y)) {
    Value* quotient = emitFloatQuotient(b, x, divisor, isSigned);
    Value* result = op == IntOp::Div ? quotient : b.CreateSub(x, b.CreateMul(quotient, divisor));
    return b.CreateSelect(isSpecial, special, result);
  }
  Value* result = op == IntOp::Div ? (isSigned ? b.CreateSDiv(x, divisor) : b.CreateUDiv(x, divisor))
                                   : (isSigned ? b.CreateSRem(x, divisor) : b.CreateURem(x, divisor));
  return b.CreateSelect(isSpecial, special, result);
}

}  // namespace

Value* emitWiden(llvm::IRBuilderBase& b, const VectorFeatures& features, Narrow format, Value* bits) {
  const FloatCode code(b, withScalar(bits->getType(), b.getFloatTy()));
  if (format == Narrow::BF16)
    return code.fromBits(b.CreateShl(b.CreateZExt(bits, code.intType), code.ci(16)));
  if (format == Narrow::F16 && features.f16Conversion)
    return b.CreateFPExt(b.CreateBitCast(bits, withScalar(bits->getType(), b.getHalfTy())), code.type);
  return widenGeneric(code, layoutOf(format), format != Narrow::F8E4M3, bits);
}

Value* emitNarrow(llvm::IRBuilderBase& b, const VectorFeatures& features, Narrow format, Value* value) {
  if (value->getType()->getScalarType()->isDoubleTy())
    value = roundToOdd(b, value);
  VORTEX_CHECK(value->getType()->getScalarType()->isFloatTy(), "narrow formats are converted from f32 and f64");
  const FloatCode code(b, value->getType());
  const bool isByte = format == Narrow::F8E4M3 || format == Narrow::F8E5M2;
  llvm::Type* resultType = withScalar(code.type, isByte ? b.getInt8Ty() : b.getInt16Ty());
  if (format == Narrow::BF16)
    return narrowBf16(code, value, resultType);
  if (format == Narrow::F16 && features.f16Conversion)
    return b.CreateBitCast(b.CreateFPTrunc(value, withScalar(code.type, b.getHalfTy())), resultType);
  return narrowGeneric(code, layoutOf(format), value, resultType);
}

/// The leading 24 bits, the last of them set where anything was cut, are exact in f32.
Value* emitIntToOdd(llvm::IRBuilderBase& b, Value* value, bool isSigned) {
  llvm::Type* wide = withScalar(value->getType(), b.getInt64Ty());
  const FloatCode code(b, withScalar(value->getType(), b.getFloatTy()));
  const auto number = [&](uint64_t n) { return llvm::ConstantInt::get(wide, n); };
  value = b.CreateIntCast(value, wide, isSigned);
  Value* size = isSigned ? b.CreateSelect(b.CreateICmpSLT(value, number(0)), b.CreateNeg(value), value) : value;
  Value* zeros = b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, size, b.getFalse());
  Value* cut = b.CreateSelect(b.CreateICmpULT(zeros, number(40)), b.CreateSub(number(40), zeros), number(0));
  Value* kept = b.CreateLShr(size, cut);
  Value* isInexact = b.CreateICmpNE(b.CreateShl(kept, cut), size);
  kept = b.CreateOr(kept, b.CreateZExt(isInexact, wide));
  Value* exponent = b.CreateShl(b.CreateAdd(b.CreateTrunc(cut, code.intType), code.ci(127)), code.ci(23));
  Value* real = b.CreateFMul(b.CreateUIToFP(b.CreateTrunc(kept, code.intType), code.type), code.fromBits(exponent));
  return isSigned ? b.CreateSelect(b.CreateICmpSLT(value, number(0)), b.CreateFNeg(real), real) : real;
}

/// Clamped before the conversion, so that no lane is out of range (poison in LLVM) and vectors stay vectors: LLVM 19
/// splits fptosi.sat of vectors into scalars.
Value* emitFloatToInt(llvm::IRBuilderBase& b, Value* x, llvm::Type* type, bool isSigned) {
  const FloatCode code(b, x->getType());
  const uint32_t width = type->getScalarSizeInBits();
  const uint32_t valueBits = isSigned ? width - 1 : width;
  const uint32_t precision = code.mantissaBits() + 1;
  const double limit = std::ldexp(1.0, static_cast<int>(valueBits));  // first value too large
  const double lowest = isSigned ? -limit : 0;
  const double highest =
      valueBits <= precision ? limit - 1 : limit - std::ldexp(1.0, static_cast<int>(valueBits - precision));
  const llvm::APInt largest = isSigned ? llvm::APInt::getSignedMaxValue(width) : llvm::APInt::getMaxValue(width);
  Value* known = b.CreateSelect(b.CreateFCmpORD(x, x), x, code.c(0));
  Value* clamped = code.atMost(code.atLeast(known, lowest), highest);
  llvm::Type* convertType = width < 32 ? withScalar(type, b.getInt32Ty()) : type;
  Value* result = isSigned || width < 32 ? b.CreateFPToSI(clamped, convertType) : b.CreateFPToUI(clamped, convertType);
  if (valueBits > precision)
    result = b.CreateSelect(b.CreateFCmpOGE(known, code.c(limit)), llvm::ConstantInt::get(type, largest), result);
  return b.CreateTrunc(result, type);
}

Value* emitInt(llvm::IRBuilderBase& b, IntOp op, Value* x, Value* y, bool isSigned) {
  VORTEX_CHECK(x->getType() == y->getType(), "operands of one type");
  const uint64_t width = x->getType()->getScalarSizeInBits();
  Value* count = b.CreateAnd(y, llvm::ConstantInt::get(y->getType(), width - 1));
  switch (op) {
  case IntOp::Div:
  case IntOp::Mod: return emitDivide(b, op, x, y, isSigned);
  case IntOp::Shl: return b.CreateShl(x, count);
  case IntOp::Shr: return isSigned ? b.CreateAShr(x, count) : b.CreateLShr(x, count);
  }
  VORTEX_UNREACHABLE("no such operation");
}

}  // namespace vortex::target::math
