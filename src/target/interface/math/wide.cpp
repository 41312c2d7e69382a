// exp-based functions go through expm1, whose result keeps its relative precision near zero. Inverse functions come down to one arctangent:
// its argument is moved to |t| ≤ tan(π/16) by the addition theorem, where twelve Taylor terms suffice.
#include "target/interface/math/wide.h"

#include "target/interface/math/functions.h"
#include "target/interface/math/wide_parts.h"

namespace vortex::target::math {
namespace {

using llvm::Value;

/// t − t³/3 + t⁵/5 − …, |t| ≤ 0.199
Value* arctangentSeries(const FloatCode& code, Value* t) {
  double terms[13];
  for (int k = 0; k < 13; ++k)
    terms[k] = (k % 2 ? 1.0 : -1.0) / (2 * k + 3);
  Value* square = code.mul(t, t);
  return code.fma(code.mul(square, t), code.polynomial(square, terms), t);
}

/// Arctangent of x in [0, 1].
Value* arctangentUnit(const FloatCode& code, Value* x) {
  constexpr double kTanEighth = 0x1.a827999fcef32p-2;  // tan(π/8)
  constexpr double kEighth[2] = {0x1.921fb54442d18p-2, 0x1.1a62633145c07p-56},
                   kQuarter[2] = {2 * kEighth[0], 2 * kEighth[1]};
  llvm::IRBuilderBase& b = code.b;
  Value* beyondFirst = b.CreateFCmpOGT(x, code.c(0.19891236737965800));  // tan(π/16)
  Value* beyondThird = b.CreateFCmpOGT(x, code.c(0.66817863791929892));  // tan(3π/16)
  auto pick = [&](double none, double eighth, double quarter) {
    return b.CreateSelect(beyondThird, code.c(quarter), b.CreateSelect(beyondFirst, code.c(eighth), code.c(none)));
  };
  Value* center = pick(0, kTanEighth, 1);
  Value* t = code.div(code.sub(x, center), code.fma(x, center, code.c(1)));
  Value* rest = code.add(arctangentSeries(code, t), pick(0, kEighth[1], kQuarter[1]));
  return code.add(pick(0, kEighth[0], kQuarter[0]), rest);
}

constexpr double kHalfPi[2] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

Value* arctangent(const FloatCode& code, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  Value* magnitude = code.abs(x);
  Value* isLarge = b.CreateFCmpOGT(magnitude, code.c(1));
  Value* angle = arctangentUnit(code, b.CreateSelect(isLarge, code.div(code.c(1), magnitude), magnitude));
  Value* complement = code.sub(code.c(kHalfPi[0]), code.sub(angle, code.c(kHalfPi[1])));
  return code.copysign(b.CreateSelect(isLarge, complement, angle), x);
}

Value* arctangent2(const FloatCode& code, Value* y, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  Value *ay = code.abs(y), *ax = code.abs(x);
  Value* isSteep = b.CreateFCmpOGT(ay, ax);
  Value *small = b.CreateSelect(isSteep, ax, ay), *large = b.CreateSelect(isSteep, ay, ax);
  Value* ratio = code.div(small, large);
  ratio = b.CreateSelect(b.CreateFCmpOEQ(small, large), code.c(1), ratio);  // ∞/∞ is a diagonal
  ratio = b.CreateSelect(b.CreateFCmpOEQ(large, code.c(0)), code.c(0), ratio);
  Value* angle = arctangentUnit(code, ratio);
  angle = b.CreateSelect(isSteep, code.sub(code.c(kHalfPi[0]), code.sub(angle, code.c(kHalfPi[1]))), angle);
  Value* isLeft = b.CreateICmpSLT(code.bits(x), code.ci(0));
  angle = b.CreateSelect(isLeft, code.sub(code.c(2 * kHalfPi[0]), code.sub(angle, code.c(2 * kHalfPi[1]))), angle);
  Value* result = code.copysign(angle, y);
  return b.CreateSelect(b.CreateFCmpUNO(x, y), code.add(x, y), result);
}

Value* squareRoot(const FloatCode& code, Value* x) { return code.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }

/// sinh |x| = (e + e / (e + 1)) / 2 with e = expm1 |x|; where exp overflows, (exp(|x|/2) / 2) · exp(|x|/2).
Value* hyperbolic(const FloatCode& code, Value* x, bool isSine) {
  llvm::IRBuilderBase& b = code.b;
  Value* magnitude = code.abs(x);
  Value* half = emitExp(code, code.mul(magnitude, code.c(0.5)));
  Value* huge = code.mul(code.mul(half, code.c(0.5)), half);
  Value* result;
  if (isSine) {
    Value* e = emitExpm1(code, magnitude);
    result = code.mul(code.c(0.5), code.add(e, code.div(e, code.add(e, code.c(1)))));
  } else {
    Value* e = emitExp(code, magnitude);
    result = code.fma(code.c(0.5), e, code.div(code.c(0.5), e));
  }
  result = b.CreateSelect(b.CreateFCmpOGT(magnitude, code.c(22)), huge, result);
  return isSine ? code.copysign(result, x) : result;
}

/// e / (e + 2) with e = expm1(2|x|), 1 from |x| = 20 on.
Value* hyperbolicTangent(const FloatCode& code, Value* x) {
  Value* limited = code.atMost(code.abs(x), 20.0);
  Value* e = emitExpm1(code, code.add(limited, limited));
  return code.copysign(code.div(e, code.add(e, code.c(2))), x);
}

/// log(u) + (x − (u − 1)) / u, u = 1 + x: the second term is what rounding u lost.
Value* logOfOnePlus(const FloatCode& code, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  Value* u = code.add(code.c(1), x);
  Value* lost = code.div(code.sub(x, code.sub(u, code.c(1))), u);
  Value* result = code.add(emitLog(code, u), lost);
  result = b.CreateSelect(b.CreateFCmpOEQ(u, code.infinity()), u, result);
  result = b.CreateSelect(b.CreateFCmpOEQ(u, code.c(0)), code.neg(code.infinity()), result);
  return b.CreateSelect(b.CreateFCmpOLT(code.abs(x), code.c(0x1p-54)), x, result);
}

/// exp(log|x| / 3), then one step of Newton's method.
Value* cubeRoot(const FloatCode& code, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  // Subnormal numbers have too few bits for the step.
  Value* isSmall = b.CreateFCmpOLT(code.abs(x), code.c(0x1p-1000));
  Value* magnitude = b.CreateSelect(isSmall, code.mul(code.abs(x), code.c(0x1p90)), code.abs(x));
  Value* root = emitExp(code, code.mul(emitLog(code, magnitude), code.c(1.0 / 3)));
  Value* square = code.mul(root, root);
  Value* excess = code.fma(square, root, code.neg(magnitude));
  root = code.sub(root, code.div(excess, code.mul(code.c(3), square)));
  root = b.CreateSelect(isSmall, code.mul(root, code.c(0x1p-30)), root);
  Value* isPlain = b.CreateAnd(b.CreateFCmpOGT(magnitude, code.c(0)), b.CreateFCmpOLT(magnitude, code.infinity()));
  return b.CreateSelect(isPlain, code.copysign(root, x), x);
}

/// Halves away from zero. With the largest number below a half, all that is no half stays on its side of the next whole number, and the sum of a
/// half rounds up to it; whole numbers of more digits stay.
Value* roundHalvesAway(const FloatCode& code, Value* x) {
  const double belowHalf = code.type->getScalarType()->isFloatTy() ? 0x1.fffffep-2 : 0x1.fffffffffffffp-2;
  return code.b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, code.add(x, code.copysign(code.c(belowHalf), x)));
}

}  // namespace

Value* emitWideUnary(llvm::IRBuilderBase& builder, Unary function, Value* x) {
  const FloatCode code(builder, x->getType());
  switch (function) {
  case Unary::Expm1: return emitExpm1(code, x);
  case Unary::Log1p: return logOfOnePlus(code, x);
  case Unary::Sin: return emitWideTrigonometric(code, Trigonometric::Sin, x);
  case Unary::Cos: return emitWideTrigonometric(code, Trigonometric::Cos, x);
  case Unary::Tan: return emitWideTrigonometric(code, Trigonometric::Tan, x);
  case Unary::Asin:
    return arctangent2(code, x, squareRoot(code, code.mul(code.sub(code.c(1), x), code.add(code.c(1), x))));
  case Unary::Acos:
    return arctangent2(code, squareRoot(code, code.mul(code.sub(code.c(1), x), code.add(code.c(1), x))), x);
  case Unary::Atan: return arctangent(code, x);
  case Unary::Sinh: return hyperbolic(code, x, true);
  case Unary::Cosh: return hyperbolic(code, x, false);
  case Unary::Tanh: return hyperbolicTangent(code, x);
  case Unary::Erf: return emitWideErf(code, x);
  case Unary::Erfc: return emitWideErfc(code, x);
  case Unary::Cbrt: return cubeRoot(code, x);
  case Unary::Round: return roundHalvesAway(code, x);
  default: return nullptr;
  }
}

Value* emitWideBinary(llvm::IRBuilderBase& builder, Binary function, Value* x, Value* y) {
  const FloatCode code(builder, x->getType());
  switch (function) {
  case Binary::Pow: return emitWidePow(code, x, y);
  case Binary::Mod: return emitWideMod(code, x, y);
  case Binary::Atan2: return arctangent2(code, x, y);
  default: return nullptr;
  }
}

}  // namespace vortex::target::math
