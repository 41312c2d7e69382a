// exp, exp2 and what is made of them use ex2.approx, whose result is within 2^-22.5 of 2^r for |r| ≤ 1/2 (PTX ISA, ex2); the argument is
// reduced first, because rounding x · log2(e) alone costs |x| ULP. rsqrt is rsqrt.approx, within 2^-22.9 of the result. Everything else is the common polynomial code, which fuses well.
#include "target/nvidia/functions.h"

#include "target/interface/math/float_code.h"
#include "target/interface/math/wide.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

namespace vortex::target::nvidia {

using llvm::Value;
using math::Binary;
using math::FloatCode;
using math::Unary;

static Value* ex2(const FloatCode& code, Value* x) {
  return code.b.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_f, {}, {x});
}

/// 2^r · 2^n. Two factors keep n = 128 and subnormal results right.
static Value* scaleBy(const FloatCode& code, Value* power, Value* n) { return code.scale(power, n); }

/// 2^n · 2^r with x · log2(e) = n + r. n is kept where 2^n is a normal number, which leaves the rest of very large and very small
/// arguments to r: there ex2 and the last product overflow and underflow as they should. log2(e) has two parts: r is exact to 2^-26 of x.
static Value* emitExp(const FloatCode& code, Value* x) {
  // In 1.5 · 2^23 + 127 + n the low bits are those of n + 127: shifted up, the float 2^n.
  constexpr double kBias = 0x1.8p+23 + 127;
  auto limit = [&](llvm::Intrinsic::ID which, Value* value, double bound) {
    return code.b.CreateBinaryIntrinsic(which, value, code.c(bound));
  };
  Value* biased =
      code.b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, code.c(0x1.715476p+0), code.c(kBias)});
  biased = limit(llvm::Intrinsic::maxnum, biased, kBias - 126);
  biased = limit(llvm::Intrinsic::minnum, biased, kBias + 126);
  Value* negated = code.sub(code.c(kBias), biased);
  Value* r = code.b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, code.c(0x1.715476p+0), negated});
  r = code.b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, code.c(0x1.4ae0cp-26), r});
  Value* power = code.b.CreateIntrinsic(llvm::Intrinsic::nvvm_ex2_approx_ftz_f, {}, {r});
  Value* scale = code.fromBits(code.b.CreateShl(code.bits(biased), code.ci(23)));
  return code.mul(power, scale);
}

static Value* emitExp2(const FloatCode& code, Value* x) {
  x = code.atMost(code.atLeast(x, -152.0), 130.0);
  const FloatCode::Whole whole = code.roundQuotient(x, 1);
  return scaleBy(code, ex2(code, code.sub(x, whole.whole)), whole.wholeBits);
}

static Value* emitSinglePrecision(llvm::IRBuilder<>& ir, Unary function, Value* x) {
  const FloatCode code(ir, x->getType());
  switch (function) {
  case Unary::Exp:
  case Unary::ExpLimited:
  case Unary::ExpNotTiny: return emitExp(code, x);
  case Unary::Exp2: return emitExp2(code, x);
  case Unary::Sigmoid: {
    Value* reciprocal = code.div(code.c(1), code.add(code.c(1), emitExp(code, code.neg(x))));
    return ir.CreateSelect(ir.CreateFCmpOLT(x, code.c(-86)), emitExp(code, x), reciprocal);
  }
  case Unary::Rsqrt: return ir.CreateIntrinsic(llvm::Intrinsic::nvvm_rsqrt_approx_f, {}, {x});
  case Unary::Round: {  // halves away from zero: no instruction rounds so
    Value* whole = ir.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x);
    Value* rest = code.abs(code.sub(x, whole));
    Value* up = ir.CreateSelect(ir.CreateFCmpOGE(rest, code.c(0.5)), code.c(1), code.c(0));
    return code.copysign(code.add(code.abs(whole), up), x);
  }
  case Unary::Asin:
  case Unary::Acos:
  case Unary::Atan:
  case Unary::Sinh:
  case Unary::Cosh:
  case Unary::Cbrt: {
    Value* wide = math::emitWideUnary(ir, function, ir.CreateFPExt(x, ir.getDoubleTy()));
    return wide ? ir.CreateFPTrunc(wide, ir.getFloatTy()) : nullptr;
  }
  default: return math::emitUnary(ir, VectorFeatures{}, function, x);
  }
}

Value* emitUnary(llvm::IRBuilder<>& ir, Unary function, Value* x) {
  if (x->getType()->isFloatTy())
    return emitSinglePrecision(ir, function, x);
  switch (function) {
  case Unary::Exp:
  case Unary::ExpLimited:
  case Unary::ExpNotTiny:
  case Unary::Exp2:
  case Unary::Log:
  case Unary::Log2:
  case Unary::Log10:
  case Unary::Sigmoid:
  case Unary::Sqrt:
  case Unary::Rsqrt:
  case Unary::Floor:
  case Unary::Ceil:
  case Unary::Trunc:
  case Unary::RoundEven:
  case Unary::Abs: return math::emitUnary(ir, VectorFeatures{}, function, x);
  default: return math::emitWideUnary(ir, function, x);
  }
}

Value* emitBinary(llvm::IRBuilder<>& ir, Binary function, Value* x, Value* y) {
  bool isWide = x->getType()->isDoubleTy();
  switch (function) {
  case Binary::Pow:
    if (!isWide)
      return math::emitBinary(ir, VectorFeatures{}, function, x, y);
    return math::emitWideBinary(ir, function, x, y);
  case Binary::Mod:
  case Binary::Atan2: {
    if (isWide)
      return math::emitWideBinary(ir, function, x, y);
    Value* wide =
        math::emitWideBinary(ir, function, ir.CreateFPExt(x, ir.getDoubleTy()), ir.CreateFPExt(y, ir.getDoubleTy()));
    return wide ? ir.CreateFPTrunc(wide, ir.getFloatTy()) : nullptr;
  }
  case Binary::MinNan:
  case Binary::MaxNan: {
    if (!isWide)
      return math::emitBinary(ir, VectorFeatures{}, function, x, y);
    // f64 has no NaN-propagating form.
    bool isMin = function == Binary::MinNan;
    Value* picked = ir.CreateBinaryIntrinsic(isMin ? llvm::Intrinsic::minnum : llvm::Intrinsic::maxnum, x, y);
    return ir.CreateSelect(ir.CreateFCmpUNO(x, y), ir.CreateFAdd(x, y), picked);
  }
  default: return math::emitBinary(ir, VectorFeatures{}, function, x, y);
  }
}

}  // namespace vortex::target::nvidia
