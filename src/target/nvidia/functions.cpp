// Functions that use the special function units, whose results are within 2^-22.5 (ex2, of the power), 2^-23 (rcp, sqrt), 2^-22.9 (rsqrt) of the exact
// ones, 2^-22 absolutely (lg2). Forms of full accuracy keep what docs/library.md promises with any results within these bounds, except exp, exp2
// and sigmoid, which do as measured; by the bounds alone they are up to 1.5 ULP worse. Narrow forms are for results that are rounded to 16 bits anyway
// (analysis/narrow_uses.h): there rounding x · log2(e), which costs |x| ULP of f32, does not matter.
#include "target/nvidia/functions.h"

#include "target/interface/math/coefficients.h"
#include "target/interface/math/float_code.h"
#include "target/interface/math/wide.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

namespace vortex::target::nvidia {

using llvm::Value;
using math::Binary;
using math::FloatCode;
using math::Form;
using math::Unary;
namespace k = math::coefficients;
namespace in = llvm::Intrinsic;

static constexpr double kLog2E = 0x1.715476p+0, kLog2ELow = 0x1.4ae0cp-26;

/// A PTX instruction on f32 without an intrinsic.
static Value* instruction(const FloatCode& code, const char* text, llvm::ArrayRef<Value*> operands) {
  llvm::SmallVector<llvm::Type*> types(operands.size(), code.type);
  std::string constraints = "=f";
  for (size_t i = 0; i < operands.size(); ++i)
    constraints += ",f";
  auto* type = llvm::FunctionType::get(code.type, types, false);
  return code.b.CreateCall(type, llvm::InlineAsm::get(type, text, constraints, false), operands);
}

static Value* unit(const FloatCode& code, in::ID id, Value* x) { return code.b.CreateIntrinsic(id, {}, {x}); }
/// Subnormal arguments count as 0, subnormal results become 0.
static Value* ex2(const FloatCode& code, Value* x) { return unit(code, in::nvvm_ex2_approx_ftz_f, x); }
static Value* rcp(const FloatCode& code, Value* x) { return unit(code, in::nvvm_rcp_approx_ftz_f, x); }

/// 2^n · power = exp(x), with scale = 2^(n + shift) a normal number.
struct Exponential {
  Value *power, *scale;
};

/// n = floor(x · log2(e)), at least `least` and at most `least` + 252: one saturated product for both limits. What lies beyond is left to the
/// power, which overflows and underflows as it should. scale = 2^(n − least − 126).
static Exponential reduceExp(const FloatCode& code, Value* x, int least) {
  // In 1.5 · 2^23 + 1 + n − least the low bits, shifted up, are the float 2^(n − least − 126).
  constexpr double kMagic = 0x1.8p+23 + 1;
  Value* share = instruction(code, "fma.rn.sat.f32 $0, $1, $2, $3;", {x, code.c(kLog2E / 252), code.c(-least / 252.0)});
  Value* whole = code.b.CreateIntrinsic(in::nvvm_fma_rm_f, {}, {share, code.c(252), code.c(kMagic)});
  Value* negated = code.sub(code.c(kMagic - least), whole);
  Value* r = code.fma(x, code.c(kLog2E), negated);
  r = code.fma(x, code.c(kLog2ELow), r);
  return {ex2(code, r), code.fromBits(code.b.CreateShl(code.bits(whole), code.ci(23)))};
}

static Value* emitExp(const FloatCode& code, Value* x) {
  const Exponential exp = reduceExp(code, x, -126);
  return code.mul(exp.power, exp.scale);
}

/// 2^-64 / (2^-64 + 2^-64 · exp(−x)): exp(−x) < 2^-62 is lost beside 1 and neither end overflows. The reciprocal gets a step of Newton's
/// method, for which the argument is limited: the sum stays finite.
static Value* emitSigmoid(const FloatCode& code, Value* x) {
  Value* limited = code.b.CreateBinaryIntrinsic(in::minimum, code.neg(x), code.c(130));
  const Exponential exp = reduceExp(code, limited, -62);
  Value* sum = code.fma(exp.power, exp.scale, code.c(0x1p-64));
  Value* first = rcp(code, sum);
  Value* excess = code.fma(code.neg(sum), first, code.c(1));
  return code.mul(code.fma(first, excess, first), code.c(0x1p-64));
}

/// x + x³ · P(x²) below 1, 1 − 2 / (1 + exp(2 |x|)) from there; infinity and NaN come out right.
static Value* emitTanh(const FloatCode& code, Value* x) {
  Value* square = code.mul(x, x);
  Value* small = code.fma(code.mul(square, code.polynomial(square, k::kTanhUnit32)), x, x);
  Value* magnitude = code.abs(x);
  Value* power = ex2(code, code.mul(magnitude, code.c(2 * kLog2E)));
  Value* large = code.fma(rcp(code, code.add(power, code.c(1))), code.c(-2), code.c(1));
  return code.copysign(code.b.CreateSelect(code.b.CreateFCmpOLT(magnitude, code.c(1)), small, large), x);
}

/// As on CPUs, with the exponential of 1 − erf as a power of two, whose exponent falls fast enough to need no limit.
static Value* emitErf(const FloatCode& code, Value* x) {
  Value* magnitude = code.abs(x);
  Value* small = code.fma(x, code.polynomial(code.mul(x, x), k::kErfRatio32), x);
  Value* large = code.sub(code.c(1), ex2(code, code.polynomial(magnitude, k::kErfcLog2_32)));
  return code.b.CreateSelect(code.b.CreateFCmpOLT(magnitude, code.c(0.9)), small, code.copysign(large, x));
}

/// x = 2^e · (1 + f) with 1 + f in [2/3, 4/3): e · ln 2 + f + f² · P(f).
static Value* emitLog(const FloatCode& code, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  Value* isSubnormal = b.CreateFCmpOLT(x, code.c(0x1p-126));
  Value* scaled = b.CreateSelect(isSubnormal, code.mul(x, code.c(0x1p23)), x);
  Value* offset = b.CreateSelect(isSubnormal, code.c(-23), code.c(0));
  Value* exponent = b.CreateAnd(b.CreateSub(code.bits(scaled), code.ci(0x3f2aaaab)), code.ci(-(int64_t(1) << 23)));
  Value* f = code.sub(code.fromBits(b.CreateSub(code.bits(scaled), exponent)), code.c(1));
  Value* e = code.fma(b.CreateSIToFP(exponent, code.type), code.c(0x1p-23), offset);
  Value* tail = code.fma(code.mul(f, f), code.polynomial(f, k::kLogThirds32), f);
  Value* result = code.fma(e, code.c(0x1.62e43p-1), tail);
  // Negative numbers, infinity and NaN; −0 joins 0.
  Value* isSpecial = b.CreateICmpUGE(code.bits(x), code.ci(0x7f800000));
  result = b.CreateSelect(isSpecial, code.fma(x, code.infinity(), code.infinity()), result);
  return b.CreateSelect(b.CreateFCmpOEQ(x, code.c(0)), code.neg(code.infinity()), result);
}

//===-- narrow forms ------------------------------------------------------------------------------------------===//

static Value* narrowExp(const FloatCode& code, Value* x, const Form& form, double log2Base) {
  if (form.mayFlush)
    return ex2(code, log2Base == 1 ? x : code.mul(x, code.c(log2Base)));
  Value* root = ex2(code, code.mul(x, code.c(log2Base / 2)));  // its square may be subnormal
  return code.mul(root, root);
}

static Value* narrowSigmoid(const FloatCode& code, Value* x, const Form& form) {
  if (form.mayFlush)
    return rcp(code, code.add(ex2(code, code.mul(x, code.c(-kLog2E))), code.c(1)));
  Value* scaled = ex2(code, code.fma(x, code.c(-kLog2E), code.c(-64)));
  return code.mul(rcp(code, code.add(scaled, code.c(0x1p-64))), code.c(0x1p-64));
}

/// exp(−x²) · t · P(t), t = 1 / (1 + 0.37 |x|); 2 − that for negative x.
static Value* narrowErfc(const FloatCode& code, Value* x, const Form& form) {
  Value* magnitude = code.abs(x);
  Value* t = rcp(code, code.fma(magnitude, code.c(0x1.7ae148p-2), code.c(1)));
  Value* scaled = code.mul(t, code.polynomial(t, k::kErfcNarrow32));
  // Half the exponent twice, where the result may be subnormal.
  Value* power = ex2(code, code.mul(code.mul(x, code.c(form.mayFlush ? -kLog2E : -kLog2E / 2)), x));
  Value* tail = code.mul(form.mayFlush ? scaled : code.mul(power, scaled), power);
  return code.b.CreateSelect(code.b.CreateFCmpOLT(x, code.c(0)), code.sub(code.c(2), tail), tail);
}

/// Null: the form of full accuracy serves.
static Value* emitNarrow(const FloatCode& code, Unary function, Value* x, const Form& form, double tanhError) {
  switch (function) {
  case Unary::Exp: return narrowExp(code, x, form, kLog2E);
  case Unary::Exp2: return narrowExp(code, x, form, 1);
  case Unary::Sigmoid: return narrowSigmoid(code, x, form);
  case Unary::Erfc: return narrowErfc(code, x, form);
  case Unary::Tanh:
    if (tanhError > (form.narrowBits > 8 ? 0x1.8p-17 : 0x1p-11))
      return nullptr;
    return instruction(code, "tanh.approx.f32 $0, $1;", {x});
  case Unary::Log:
  case Unary::Log2: {
    if (!form.isFarFromOne)
      return nullptr;
    Value* log2 = unit(code, in::nvvm_lg2_approx_f, x);
    return function == Unary::Log ? code.mul(log2, code.c(0x1.62e43p-1)) : log2;
  }
  case Unary::Sqrt: return unit(code, form.isNormal ? in::nvvm_sqrt_approx_ftz_f : in::nvvm_sqrt_approx_f, x);
  case Unary::Rsqrt: return unit(code, form.isNormal ? in::nvvm_rsqrt_approx_ftz_f : in::nvvm_rsqrt_approx_f, x);
  default: return nullptr;
  }
}

/// exp(−d) is off by d · 2^-24 of itself at most, and by less of the largest summand; what is lost below 2^-126 is nothing beside that.
static Value* emitSummed(const FloatCode& code, Unary function, Value* x) {
  if (function != Unary::Exp && function != Unary::Exp2)
    return nullptr;
  return ex2(code, function == Unary::Exp ? code.mul(x, code.c(kLog2E)) : x);
}

static Value* emitSinglePrecision(llvm::IRBuilder<>& ir, Unary function, Value* x) {
  const FloatCode code(ir, x->getType());
  switch (function) {
  case Unary::Exp:
  case Unary::ExpLimited:
  case Unary::ExpNotTiny: return emitExp(code, x);
  case Unary::Exp2: return unit(code, in::nvvm_ex2_approx_f, x);  // the hardware's reduction is exact
  case Unary::Sigmoid: return emitSigmoid(code, x);
  case Unary::Tanh: return emitTanh(code, x);
  case Unary::Erf: return emitErf(code, x);
  case Unary::Log: return emitLog(code, x);
  case Unary::Rsqrt: return unit(code, in::nvvm_rsqrt_approx_f, x);
  case Unary::Round: return math::emitWideUnary(ir, function, x);  // no instruction rounds halves away from zero
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

Value* emitUnary(llvm::IRBuilder<>& ir, Unary function, Value* x, const Form& form, double tanhError) {
  if (x->getType()->isFloatTy()) {
    const FloatCode code(ir, x->getType());
    Value* shorter = form.narrowBits ? emitNarrow(code, function, x, form, tanhError)
                     : form.isSummed ? emitSummed(code, function, x)
                                     : nullptr;
    return shorter ? shorter : emitSinglePrecision(ir, function, x);
  }
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

Value* emitDivision(llvm::IRBuilder<>& ir, Value* x, Value* y, const Form& form) {
  if (!form.narrowBits || !x->getType()->isFloatTy())
    return ir.CreateFDiv(x, y);
  const FloatCode code(ir, x->getType());
  return form.isNormal ? code.mul(x, rcp(code, y)) : instruction(code, "div.full.f32 $0, $1, $2;", {x, y});
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
