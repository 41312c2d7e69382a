// erf: below 2 the series 2/√π · exp(−x²) · Σ 2ⁿ x²ⁿ⁺¹ / (1·3·…·(2n+1)), whose terms are all positive; from there 1 − erfc by Laplace's continued
// fraction, which erfc uses from 1 on. pow: exp(y · log x) with the logarithm as a sum of two doubles. fmod: long division of the mantissas, exact.
#include "target/interface/math/wide_parts.h"

#include <llvm/IR/Module.h>

namespace vortex::target::math {
namespace {

using llvm::Value;

/// A call of an internal function of the module, made by `body` on first use.
Value* callFunction(const FloatCode& code, const char* name, llvm::ArrayRef<Value*> arguments,
                    llvm::function_ref<Value*(llvm::IRBuilder<>&, llvm::Function*)> body) {
  llvm::Module& module = *code.b.GetInsertBlock()->getModule();
  llvm::Function* function = module.getFunction(name);
  if (!function) {
    llvm::SmallVector<llvm::Type*> types(arguments.size(), code.type);
    function = llvm::Function::Create(llvm::FunctionType::get(code.type, types, false),
                                      llvm::GlobalValue::InternalLinkage, name, module);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    function->addFnAttr(llvm::Attribute::NoInline);
    llvm::IRBuilder<> inner(llvm::BasicBlock::Create(code.b.getContext(), "entry", function));
    inner.CreateRet(body(inner, function));
  }
  return code.b.CreateCall(function, arguments);
}

/// values = body(i, values) for i = 0 … count − 1 (i64, count ≥ 1).
llvm::SmallVector<Value*> emitLoop(llvm::IRBuilder<>& b, Value* count, llvm::ArrayRef<Value*> initial,
                                   llvm::function_ref<llvm::SmallVector<Value*>(Value*, llvm::ArrayRef<Value*>)> body) {
  llvm::Function* function = b.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(b.getContext(), "loop", function);
  auto* after = llvm::BasicBlock::Create(b.getContext(), "after", function);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(b.getInt64(0), before);
  llvm::SmallVector<llvm::PHINode*> phis;
  llvm::SmallVector<Value*> current;
  for (Value* value : initial) {
    phis.push_back(b.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
    current.push_back(phis.back());
  }
  llvm::SmallVector<Value*> next = body(i, current);
  Value* following = b.CreateAdd(i, b.getInt64(1));
  i->addIncoming(following, b.GetInsertBlock());
  for (auto [phi, value] : llvm::zip(phis, next))
    phi->addIncoming(value, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(following, count), loop, after);
  b.SetInsertPoint(after);
  return next;
}

Value* exactFma(const FloatCode& code, Value* x, Value* y, Value* z) {
  return code.b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
}

/// exp(−x²): the square has two parts.
Value* gauss(const FloatCode& code, Value* x) {
  Value* square = code.mul(x, x);
  Value* lost = exactFma(code, x, x, code.neg(square));
  return code.mul(emitExp(code, code.neg(square)), code.sub(code.c(1), lost));
}

/// erf of x in [0, 2].
Value* erfSeries(const FloatCode& code, llvm::IRBuilder<>& b, Value* x) {
  Value* square = code.mul(x, x);
  // At 2 the terms fall below 2^-56 of the sum within 40.
  auto series = emitLoop(b, b.getInt64(44), {x, x}, [&](Value* i, llvm::ArrayRef<Value*> current) {
    Value* odd = code.add(code.mul(b.CreateUIToFP(i, code.type), code.c(2)), code.c(3));
    Value* term = code.div(code.mul(current[0], code.mul(code.c(2), square)), odd);
    return llvm::SmallVector<Value*>{term, code.add(current[1], term)};
  });
  return code.mul(code.c(0x1.20dd750429b6dp+0), code.mul(gauss(code, x), series[1]));
}

/// erfc(x) = exp(−x²)/√π · 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + …)))), `depth` fractions: 60 from x = 2 on, 220 from 1.
Value* erfcFraction(const FloatCode& code, llvm::IRBuilder<>& b, Value* x, int depth) {
  auto fraction = emitLoop(b, b.getInt64(depth), {x}, [&](Value* i, llvm::ArrayRef<Value*> current) {
    Value* half = code.mul(b.CreateUIToFP(b.CreateSub(b.getInt64(depth), i), code.type), code.c(0.5));
    return llvm::SmallVector<Value*>{code.add(x, code.div(half, current[0]))};
  });
  return code.div(code.mul(gauss(code, x), code.c(0x1.20dd750429b6dp-1)), fraction[0]);
}

Value* errorFunction(llvm::IRBuilder<>& b, Value* x) {
  FloatCode code(b, x->getType());
  Value* magnitude = code.atMost(code.abs(x), 6.5);
  Value* large = code.sub(code.c(1), erfcFraction(code, b, magnitude, 60));
  Value* result = b.CreateSelect(b.CreateFCmpOLT(magnitude, code.c(2)), erfSeries(code, b, magnitude), large);
  result = code.copysign(result, x);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, result);
}

/// Below 1 the difference from 1 loses two bits at most.
Value* complement(llvm::IRBuilder<>& b, Value* x) {
  FloatCode code(b, x->getType());
  Value* magnitude = code.atMost(code.abs(x), 28.0);
  Value* small = code.sub(code.c(1), code.copysign(erfSeries(code, b, code.atMost(magnitude, 1.0)), x));
  Value* tail = erfcFraction(code, b, code.atLeast(magnitude, 1.0), 220);
  Value* large = b.CreateSelect(b.CreateFCmpOLT(x, code.c(0)), code.sub(code.c(2), tail), tail);
  Value* result = b.CreateSelect(b.CreateFCmpOLT(magnitude, code.c(1)), small, large);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), x, result);
}

struct Sum {
  Value *high, *low;
};

/// |a| ≥ |b|
Sum fastSum(const FloatCode& code, Value* a, Value* b) {
  Value* high = code.add(a, b);
  return {high, code.sub(b, code.sub(high, a))};
}

/// log x for positive x: x = m · 2^e, s = (m − 1) / (m + 1) in two parts, log m = 2s + 2s³/3 + 2s⁵/5 + …
Sum preciseLog(const FloatCode& code, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  Value* isSmall = b.CreateFCmpOLT(x, code.c(0x1p-1022));
  Value* normal = b.CreateSelect(isSmall, code.mul(x, code.c(0x1p54)), x);
  Value* bits = code.bits(normal);
  // m in [√½, √2)
  Value* offset = b.CreateSub(bits, code.ci(0x3fe6a09e667f3bcd));
  Value* e = b.CreateAShr(offset, code.ci(52));
  Value* m = code.fromBits(b.CreateSub(bits, b.CreateShl(e, code.ci(52))));
  e = b.CreateSub(e, b.CreateSelect(isSmall, code.ci(54), code.ci(0)));
  Value* n = b.CreateSIToFP(e, code.type);
  Value *numerator = code.sub(m, code.c(1)), *denominator = code.add(m, code.c(1));
  Value* denominatorLow = code.sub(m, code.sub(denominator, code.c(1)));
  Value* s = code.div(numerator, denominator);
  Value* rest = exactFma(code, code.neg(s), denominator, numerator);
  Value* sLow = code.div(exactFma(code, code.neg(s), denominatorLow, rest), denominator);
  Value* square = code.mul(s, s);
  Value* squareLow = exactFma(code, s, s, code.neg(square));
  squareLow = code.fma(code.mul(code.c(2), s), sLow, squareLow);
  double terms[12];
  for (int k = 0; k < 12; ++k)
    terms[k] = 2.0 / (2 * k + 5);
  Value* tail = code.mul(square, code.polynomial(square, terms));  // 2s²/5 + 2s⁴/7 + …, to be added to 2/3
  Sum inner = fastSum(code, code.c(0x1.5555555555555p-1), tail);
  inner.low = code.add(inner.low, code.c(0x1.5555555555555p-55));
  // cube = s³ in two parts
  Value* cube = code.mul(square, s);
  Value* cubeLow = exactFma(code, square, s, code.neg(cube));
  cubeLow = code.add(cubeLow, code.fma(squareLow, s, code.mul(square, sLow)));
  Value* product = code.mul(cube, inner.high);
  Value* productLow = exactFma(code, cube, inner.high, code.neg(product));
  productLow = code.add(productLow, code.fma(cubeLow, inner.high, code.mul(cube, inner.low)));
  Value* twice = code.add(s, s);
  Sum m1 = fastSum(code, twice, product);
  m1.low = code.add(m1.low, code.add(productLow, code.add(sLow, sLow)));
  // n · ln 2: the first part has 32 bits, so that the product is exact
  Sum result = fastSum(code, code.mul(n, code.c(0x1.62e42feep-1)), m1.high);
  Value* n0 = b.CreateFCmpOEQ(n, code.c(0));
  result.high = b.CreateSelect(n0, m1.high, result.high);
  result.low = b.CreateSelect(n0, code.c(0), result.low);
  result.low = code.add(result.low, code.fma(n, code.c(0x1.a39ef35793c76p-33), m1.low));
  return fastSum(code, result.high, result.low);
}

Value* power(llvm::IRBuilder<>& b, Value* x, Value* y) {
  FloatCode code(b, x->getType());
  Value* magnitude = code.abs(x);
  Value* isPlain = b.CreateAnd(b.CreateFCmpOGT(magnitude, code.c(0)), b.CreateFCmpOLT(magnitude, code.infinity()));
  Sum log = preciseLog(code, b.CreateSelect(isPlain, magnitude, code.c(2)));
  // Beyond ±1e300 the result is 0, 1 or ∞ whatever the low part.
  Value* limited = code.atMost(code.atLeast(y, -1e300), 1e300);
  Value* product = code.mul(limited, log.high);
  Value* productLow = code.add(exactFma(code, limited, log.high, code.neg(product)), code.mul(limited, log.low));
  Value* isExtreme = b.CreateFCmpOGT(code.abs(product), code.c(760));
  Value* clamped = code.atMost(code.atLeast(product, -760.0), 760.0);
  productLow = b.CreateSelect(isExtreme, code.c(0), productLow);
  Value* exp = emitExp(code, clamped);
  Value* result = b.CreateSelect(b.CreateFCmpOLT(exp, code.infinity()), code.fma(exp, productLow, exp), exp);
  // log 0 = −∞ and log ∞ = ∞
  Value *zero = code.c(0), *one = code.c(1);
  Value* grows = b.CreateXor(b.CreateFCmpOEQ(magnitude, zero), b.CreateFCmpOGT(y, zero));
  result = b.CreateSelect(isPlain, result, b.CreateSelect(grows, code.infinity(), zero));
  Value* unit = b.CreateFCmpOEQ(magnitude, one);
  result = b.CreateSelect(unit, one, result);
  Value* whole = b.CreateFCmpOEQ(b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, y), y);
  Value* half = code.mul(y, code.c(0.5));
  Value* odd = b.CreateAnd(whole, b.CreateFCmpONE(b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, half), half));
  result = b.CreateSelect(odd, code.copysign(result, x), result);
  Value* negative = b.CreateAnd(b.CreateFCmpOLT(x, zero), b.CreateFCmpOGT(x, code.neg(code.infinity())));
  result = b.CreateSelect(b.CreateAnd(negative, b.CreateNot(whole)), code.nan(), result);
  result = b.CreateSelect(b.CreateFCmpUNO(x, y), code.add(x, y), result);
  return b.CreateSelect(b.CreateOr(b.CreateFCmpOEQ(x, one), b.CreateFCmpOEQ(y, zero)), one, result);
}

/// |x| = m · 2^(e − 1075) with m in [2^52, 2^53); subnormals have smaller e.
struct Parts {
  Value *m, *e;
};
Parts split(const FloatCode& code, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  Value* bits = b.CreateAnd(code.bits(x), code.ci(INT64_MAX));
  Value* e = b.CreateLShr(bits, code.ci(52));
  Value* fraction = b.CreateAnd(bits, code.ci((int64_t(1) << 52) - 1));
  Value* isNormal = b.CreateICmpNE(e, code.ci(0));
  Value* shift = b.CreateSub(b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, fraction, b.getFalse()), code.ci(11));
  shift = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, shift, code.ci(52));
  Value* m = b.CreateSelect(isNormal, b.CreateOr(fraction, code.ci(int64_t(1) << 52)), b.CreateShl(fraction, shift));
  return {m, b.CreateSelect(isNormal, e, b.CreateSub(code.ci(1), shift))};
}

Value* remainder(llvm::IRBuilder<>& b, Value* x, Value* y) {
  FloatCode code(b, x->getType());
  Parts dividend = split(code, x), divisor = split(code, y);
  Value* distance = b.CreateSub(dividend.e, divisor.e);
  Value* steps = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, distance, code.ci(0));
  auto reduce = [&](Value* m) { return b.CreateSelect(b.CreateICmpUGE(m, divisor.m), b.CreateSub(m, divisor.m), m); };
  // One subtraction per bit of the quotient; the last without a shift.
  auto rest = emitLoop(b, b.CreateAdd(steps, code.ci(1)), {dividend.m}, [&](Value* i, llvm::ArrayRef<Value*> current) {
    Value* m = b.CreateSelect(b.CreateICmpEQ(i, code.ci(0)), current[0], b.CreateShl(current[0], code.ci(1)));
    return llvm::SmallVector<Value*>{reduce(m)};
  });
  // rest · 2^(e − 1075), exact: in three factors, none of which leaves the normal range too early.
  Value* exponent = b.CreateSub(divisor.e, code.ci(1075));
  Value* first = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, exponent, code.ci(-1000));
  Value* second = b.CreateSub(exponent, first);
  Value* value =
      code.mul(code.mul(b.CreateUIToFP(rest[0], code.type), code.powerOfTwo(first)), code.powerOfTwo(second));
  Value* result = b.CreateSelect(b.CreateICmpSLT(distance, code.ci(0)), code.abs(x), value);
  result = code.copysign(result, x);
  Value* isInvalid =
      b.CreateOr(b.CreateFCmpOEQ(y, code.c(0)), b.CreateNot(b.CreateFCmpOLT(code.abs(x), code.infinity())));
  result = b.CreateSelect(b.CreateFCmpOEQ(code.abs(y), code.infinity()), x, result);
  result = b.CreateSelect(isInvalid, code.nan(), result);
  return b.CreateSelect(b.CreateFCmpUNO(x, y), code.add(x, y), result);
}

}  // namespace

Value* emitWideErf(const FloatCode& code, Value* x) {
  return callFunction(code, "vortex.math.erf_f64", {x},
                      [](llvm::IRBuilder<>& b, llvm::Function* f) { return errorFunction(b, f->getArg(0)); });
}

Value* emitWideErfc(const FloatCode& code, Value* x) {
  return callFunction(code, "vortex.math.erfc_f64", {x},
                      [](llvm::IRBuilder<>& b, llvm::Function* f) { return complement(b, f->getArg(0)); });
}

Value* emitWidePow(const FloatCode& code, Value* x, Value* y) {
  return callFunction(code, "vortex.math.pow_f64", {x, y},
                      [](llvm::IRBuilder<>& b, llvm::Function* f) { return power(b, f->getArg(0), f->getArg(1)); });
}

Value* emitWideMod(const FloatCode& code, Value* x, Value* y) {
  return callFunction(code, "vortex.math.fmod_f64", {x, y},
                      [](llvm::IRBuilder<>& b, llvm::Function* f) { return remainder(b, f->getArg(0), f->getArg(1)); });
}

}  // namespace vortex::target::math
