// A thin layer over IRBuilder for one float type (scalar or vector): constants are splat, flags cleared, fmuladd used
// throughout, so that the code fuses where the hardware can and is correct to the stated error where it cannot.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <span>

namespace vortex::target::math {

/// `type` with its scalar replaced, the lane count kept.
inline llvm::Type* withScalar(llvm::Type* type, llvm::Type* scalar) {
  if (auto* vector = llvm::dyn_cast<llvm::VectorType>(type))
    return llvm::VectorType::get(scalar, vector->getElementCount());
  return scalar;
}

class FloatCode {
public:
  using Value = llvm::Value;

  /// `fused`: the hardware has FMA.
  FloatCode(llvm::IRBuilderBase& builder, llvm::Type* type, bool fused = true)
      : b(builder), type(type), fused(fused), isDouble(type->getScalarType()->isDoubleTy()),
        intType(withScalar(type, isDouble ? builder.getInt64Ty() : builder.getInt32Ty())), guard_(builder) {
    builder.clearFastMathFlags();
  }

  Value* c(double value) const { return llvm::ConstantFP::get(type, value); }
  Value* ci(int64_t value) const { return llvm::ConstantInt::get(intType, static_cast<uint64_t>(value)); }
  Value* infinity() const { return llvm::ConstantFP::getInfinity(type); }
  Value* nan() const { return llvm::ConstantFP::getQNaN(type); }

  Value* add(Value* x, Value* y) const { return b.CreateFAdd(x, y); }
  Value* sub(Value* x, Value* y) const { return b.CreateFSub(x, y); }
  Value* mul(Value* x, Value* y) const { return b.CreateFMul(x, y); }
  Value* div(Value* x, Value* y) const { return b.CreateFDiv(x, y); }
  Value* neg(Value* x) const { return b.CreateFNeg(x); }
  /// x·y + z, fused or not.
  Value* fma(Value* x, Value* y, Value* z) const {
    return b.CreateIntrinsic(llvm::Intrinsic::fmuladd, {x->getType()}, {x, y, z});
  }
  Value* abs(Value* x) const { return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* copysign(Value* magnitude, Value* sign) const {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
  }
  Value* bits(Value* x) const { return b.CreateBitCast(x, intType); }
  Value* fromBits(Value* x) const { return b.CreateBitCast(x, type); }
  /// Limits that pass NaN through; one minps/maxps each.
  Value* atLeast(Value* x, double bound) const { return b.CreateSelect(b.CreateFCmpOLT(x, c(bound)), c(bound), x); }
  Value* atMost(Value* x, double bound) const { return b.CreateSelect(b.CreateFCmpOGT(x, c(bound)), c(bound), x); }

  /// coefficients[0] + coefficients[1]·x + …
  template <typename T> Value* polynomial(Value* x, std::span<const T> coefficients) const {
    Value* sum = c(coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;)
      sum = fma(sum, x, c(coefficients[i]));
    return sum;
  }
  template <typename T, size_t n> Value* polynomial(Value* x, const T (&coefficients)[n]) const {
    return polynomial<T>(x, std::span<const T>(coefficients, n));
  }

  uint32_t mantissaBits() const { return isDouble ? 52 : 23; }
  int64_t bias() const { return isDouble ? 1023 : 127; }
  /// Adding it rounds to an integer, whose value is then in the low bits: 1.5 · 2^mantissaBits.
  double roundingMagic() const { return isDouble ? 0x1.8p52 : 0x1.8p23; }

  /// x / step rounded to an integer: `whole` as a float, `wholeBits` as an integer. |x / step| < 2^21.
  struct Whole {
    Value* whole;
    Value* wholeBits;
  };
  Whole roundQuotient(Value* x, double reciprocalStep) const {
    Value* shifted = fma(x, c(reciprocalStep), c(roundingMagic()));
    Value* magicBits = llvm::ConstantExpr::getBitCast(llvm::cast<llvm::Constant>(c(roundingMagic())), intType);
    return {sub(shifted, c(roundingMagic())), b.CreateSub(bits(shifted), magicBits)};
  }
  /// The same, and 2^whole as one or two factors, made by shifts of the rounded sum: the rounding constant holds the exponent's bias.
  struct WholeFactors {
    Value* whole;
    Value* power;
    Value* rest = nullptr;
  };
  /// power = 2^(whole + shift), a normal number.
  WholeFactors roundQuotientToPower(Value* x, double reciprocalStep, int64_t shift) const {
    const double magic = roundingMagic() + static_cast<double>(bias() + shift);
    Value* shifted = fma(x, c(reciprocalStep), c(magic));
    return {sub(shifted, c(magic)), fromBits(b.CreateShl(bits(shifted), ci(mantissaBits())))};
  }
  /// power · rest = 2^whole, both normal, for |whole| up to twice the exponent range: their product with a number of [0.5, 2) is rounded
  /// once, overflows to infinity and underflows to subnormals.
  WholeFactors roundQuotientToFactors(Value* x, double reciprocalStep) const {
    const double magic = roundingMagic() + static_cast<double>(2 * bias());
    Value* shifted = fma(x, c(reciprocalStep), c(magic));
    // Of whole + 2·bias the half, rounded down, and what is left.
    Value* half = b.CreateAnd(b.CreateShl(bits(shifted), ci(mantissaBits() - 1)), ci(-(int64_t(1) << mantissaBits())));
    Value* rest = b.CreateSub(b.CreateShl(bits(shifted), ci(mantissaBits())), half);
    return {sub(shifted, c(magic)), fromBits(half), fromBits(rest)};
  }
  /// 2^n for integer n within the normal exponents.
  Value* powerOfTwo(Value* n) const { return fromBits(b.CreateShl(b.CreateAdd(n, ci(bias())), ci(mantissaBits()))); }
  /// x · 2^n with one rounding, for |n| up to twice the exponent range: overflows to infinity, underflows to
  /// subnormals.
  Value* scale(Value* x, Value* n) const {
    Value* half = b.CreateAShr(n, ci(1));
    return mul(mul(x, powerOfTwo(half)), powerOfTwo(b.CreateSub(n, half)));
  }

  llvm::IRBuilderBase& b;
  llvm::Type* type;
  bool fused;
  bool narrow = false;  ///< results are rounded to 16 bits: a relative error of 2^-18 will do
  bool isDouble;
  llvm::Type* intType;

private:
  llvm::IRBuilderBase::FastMathFlagGuard guard_;
};

}  // namespace vortex::target::math
