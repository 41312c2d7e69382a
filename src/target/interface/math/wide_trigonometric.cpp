// sin, cos, tan of f64: x = n·π/2 + r, |r| ≤ π/4, r in two parts; then Taylor polynomials, whose error at π/4 is below 2^-58. Up to 2^30 n·π/2 is
// subtracted in three parts. Beyond, n and r come from x · 2/π modulo 4 in integers: 53 bits of x times the 192 bits of 2/π that matter at its
// exponent (Payne and Hanek).
#include "target/interface/math/wide_parts.h"

#include <llvm/IR/Module.h>

namespace vortex::target::math {
namespace {

using llvm::Value;

constexpr double kWideFastLimit = 0x1p30;
constexpr double kHalfPiParts[3] = {0x1.921fb54442d18p+0, 0x1.1a62633145c06p-54, 0x1.c1cd129024e09p-106};
/// Bits of 2/π after the point, 64 per word, behind 64 zeros.
constexpr uint64_t kTwoOverPi[] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
};

/// n modulo 4 (i64) and the angle as an unevaluated sum.
struct WideQuarter {
  Value *n, *high, *low;
};

WideQuarter reduceWideFast(const FloatCode& code, Value* x) {
  const FloatCode::Whole whole = code.roundQuotient(x, 0x1.45f306dc9c883p-1);
  auto exactFma = [&](Value* a, Value* b, Value* c) {
    return code.b.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  };
  Value* n = whole.whole;
  Value* first = exactFma(n, code.c(-kHalfPiParts[0]), x);  // exact: the leading bits cancel
  Value* product = code.mul(n, code.c(kHalfPiParts[1]));
  Value* productLow = exactFma(n, code.c(kHalfPiParts[1]), code.neg(product));
  Value* high = code.sub(first, product);
  // first − high − product, whatever their order of size
  Value* back = code.sub(first, high);
  Value* error = code.sub(back, product);
  Value* low = code.sub(error, code.add(productLow, code.mul(n, code.c(kHalfPiParts[2]))));
  Value* sum = code.add(high, low);
  return {whole.wholeBits, sum, code.add(code.sub(high, sum), low)};
}

/// Scalars only; x finite and ≥ 2 in magnitude.
WideQuarter reduceWideHuge(const FloatCode& code, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  const char* name = "vortex.math.two_over_pi_bits";
  llvm::GlobalVariable* table = module.getGlobalVariable(name, /*AllowInternal=*/true);
  if (!table) {
    auto* data = llvm::ConstantDataArray::get(b.getContext(), llvm::ArrayRef<uint64_t>(kTwoOverPi));
    table = new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::InternalLinkage, data, name);
  }
  llvm::Type *i64 = b.getInt64Ty(), *i128 = b.getInt128Ty();
  Value* bits = code.bits(x);
  Value* mantissa = b.CreateOr(b.CreateAnd(bits, code.ci((int64_t(1) << 52) - 1)), code.ci(int64_t(1) << 52));
  // x = mantissa · 2^e. The product's bits of weight 4 and more do not matter: the window starts at bit e − 2 of 2/π (bit 0 weighs 1/2), where
  // its first two bits meet weight 2 and 1. |x| ≥ 2^30 means e ≥ −22.
  Value* e = b.CreateSub(b.CreateAnd(b.CreateLShr(bits, code.ci(52)), code.ci(2047)), code.ci(1075));
  Value* start = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, b.CreateAdd(e, code.ci(62)), code.ci(0));
  start = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, start, code.ci(1040));
  Value *word = b.CreateLShr(start, code.ci(6)), *shift = b.CreateAnd(start, code.ci(63));
  Value* raw[4];
  for (int i = 0; i < 4; ++i)
    raw[i] = b.CreateLoad(i64, b.CreateGEP(i64, table, b.CreateAdd(word, code.ci(i))));
  Value* window[3];
  for (int i = 0; i < 3; ++i)
    window[i] = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {raw[i], raw[i + 1], shift});
  // mantissa · window modulo 2^192, most significant word first.
  auto wide = [&](Value* value) { return b.CreateZExt(value, i128); };
  auto upper = [&](Value* value) { return b.CreateTrunc(b.CreateLShr(value, uint64_t(64)), i64); };
  auto lower = [&](Value* value) { return b.CreateTrunc(value, i64); };
  Value* p2 = b.CreateMul(wide(mantissa), wide(window[2]));
  Value* p1 = b.CreateAdd(b.CreateMul(wide(mantissa), wide(window[1])), wide(upper(p2)));
  Value* top = b.CreateAdd(b.CreateMul(mantissa, window[0]), upper(p1));
  Value *middle = lower(p1), *bottom = lower(p2);
  Value* n = b.CreateLShr(top, code.ci(62));
  // The fraction: 128 bits behind n, as a signed number once n is rounded to the nearest.
  Value* fractionHigh = b.CreateOr(b.CreateShl(top, code.ci(2)), b.CreateLShr(middle, code.ci(62)));
  Value* fractionLow = b.CreateOr(b.CreateShl(middle, code.ci(2)), b.CreateLShr(bottom, code.ci(62)));
  Value* roundUp = b.CreateLShr(fractionHigh, code.ci(63));
  n = b.CreateAdd(n, roundUp);
  Value* fraction = b.CreateOr(b.CreateShl(wide(fractionHigh), uint64_t(64)), wide(fractionLow));  // signed, 2^-128
  // To two doubles: the leading 64 bits after normalisation, then the rest.
  Value* isNegative = b.CreateICmpSLT(fraction, llvm::ConstantInt::get(i128, 0));
  Value* magnitude = b.CreateSelect(isNegative, b.CreateNeg(fraction), fraction);
  Value* zeros = b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, magnitude, b.getFalse());
  Value* normal =
      b.CreateShl(magnitude, b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, zeros, llvm::ConstantInt::get(i128, 127)));
  Value* lead = b.CreateLShr(upper(normal), code.ci(11));  // 53 bits
  Value* rest = b.CreateLShr(lower(b.CreateLShr(b.CreateShl(normal, uint64_t(53)), uint64_t(64))), code.ci(11));
  Value* scale = code.powerOfTwo(b.CreateSub(code.ci(-53), lower(zeros)));  // of one unit of `lead`
  auto asFloat = [&](Value* value) { return b.CreateUIToFP(value, code.type); };
  Value* high = code.mul(asFloat(lead), scale);
  Value* low = code.mul(code.mul(asFloat(rest), code.c(0x1p-53)), scale);
  // times π/2
  auto exactFma = [&](Value* a, Value* m, Value* c) {
    return b.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, m, c});
  };
  Value* product = code.mul(high, code.c(kHalfPiParts[0]));
  Value* error = exactFma(high, code.c(kHalfPiParts[0]), code.neg(product));
  error = code.add(error, code.add(code.mul(high, code.c(kHalfPiParts[1])), code.mul(low, code.c(kHalfPiParts[0]))));
  Value* sum = code.add(product, error);
  Value* tail = code.add(code.sub(product, sum), error);
  // The sign of the fraction, then of x: sin(−x) = −sin(x) means −n and −r.
  Value* flips = b.CreateXor(isNegative, b.CreateICmpSLT(bits, code.ci(0)));
  n = b.CreateSelect(b.CreateICmpSLT(bits, code.ci(0)), b.CreateNeg(n), n);
  return {n, b.CreateSelect(flips, code.neg(sum), sum), b.CreateSelect(flips, code.neg(tail), tail)};
}

/// { n, high, low } from an internal function of the module, so that callers stay without branches.
WideQuarter callFunction(const FloatCode& code, Value* x, const char* name, llvm::Attribute::AttrKind inlining,
                         llvm::function_ref<WideQuarter(const FloatCode&, Value*)> body) {
  llvm::IRBuilderBase& b = code.b;
  llvm::Module& module = *b.GetInsertBlock()->getModule();
  auto* type = llvm::StructType::get(b.getContext(), {code.intType, code.type, code.type});
  llvm::Function* function = module.getFunction(name);
  if (!function) {
    function = llvm::Function::Create(llvm::FunctionType::get(type, {code.type}, false),
                                      llvm::GlobalValue::InternalLinkage, name, module);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    function->addFnAttr(inlining);
    llvm::IRBuilder<> inner(llvm::BasicBlock::Create(b.getContext(), "entry", function));
    WideQuarter reduced = body(FloatCode(inner, code.type), function->getArg(0));
    Value* result = llvm::PoisonValue::get(type);
    unsigned field = 0;
    for (Value* part : {reduced.n, reduced.high, reduced.low})
      result = inner.CreateInsertValue(result, part, field++);
    inner.CreateRet(result);
  }
  Value* result = b.CreateCall(function, {x});
  return {b.CreateExtractValue(result, 0), b.CreateExtractValue(result, 1), b.CreateExtractValue(result, 2)};
}

WideQuarter reduceWideHugeOutOfLine(const FloatCode& code, Value* x) {
  return callFunction(code, x, "vortex.math.reduce_huge_f64", llvm::Attribute::NoInline, reduceWideHuge);
}

/// One way or the other, behind a branch.
WideQuarter reduceBranching(const FloatCode& code, Value* x) {
  auto& b = static_cast<llvm::IRBuilder<>&>(code.b);
  llvm::Function* function = b.GetInsertBlock()->getParent();
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(b.getContext(), name, function); };
  llvm::BasicBlock *fastBlock = block("fast"), *hugeBlock = block("huge"), *done = block("done");
  b.CreateCondBr(b.CreateFCmpOGT(code.abs(x), code.c(kWideFastLimit)), hugeBlock, fastBlock);
  b.SetInsertPoint(fastBlock);
  WideQuarter fast = reduceWideFast(code, x);
  b.CreateBr(done);
  b.SetInsertPoint(hugeBlock);
  WideQuarter huge = reduceWideHugeOutOfLine(code, x);
  b.CreateBr(done);
  b.SetInsertPoint(done);
  auto merge = [&](Value* a, Value* c) -> Value* {
    llvm::PHINode* phi = b.CreatePHI(a->getType(), 2);
    phi->addIncoming(a, fastBlock);
    phi->addIncoming(c, hugeBlock);
    return phi;
  };
  Value* n = merge(fast.n, huge.n);
  Value* high = merge(fast.high, huge.high);
  return {n, high, merge(fast.low, huge.low)};
}

/// sin(high + low), |high| ≤ π/4
Value* sineOf(const FloatCode& code, Value* high, Value* low) {
  double terms[8], factorial = 1;
  for (int k = 0; k < 8; ++k) {
    factorial *= (2 * k + 2) * (2 * k + 3);
    terms[k] = (k % 2 ? 1.0 : -1.0) / factorial;
  }
  Value* square = code.mul(high, high);
  Value* cubic = code.mul(code.mul(square, high), code.polynomial(square, terms));
  // low · cos(high) ≈ low · (1 − high²/2)
  Value* correction = code.mul(low, code.fma(square, code.c(-0.5), code.c(1)));
  return code.add(high, code.add(cubic, correction));
}

Value* cosineOf(const FloatCode& code, Value* high, Value* low) {
  double terms[8], factorial = 2;
  for (int k = 0; k < 8; ++k) {
    factorial *= (2 * k + 3) * (2 * k + 4);
    terms[k] = (k % 2 ? -1.0 : 1.0) / factorial;
  }
  Value* square = code.mul(high, high);
  Value* half = code.mul(square, code.c(0.5));
  Value* main = code.sub(code.c(1), half);
  Value* lost = code.sub(code.sub(code.c(1), main), half);  // rounding of 1 − half
  Value* rest = code.fma(code.mul(square, square), code.polynomial(square, terms), code.neg(code.mul(high, low)));
  return code.add(main, code.add(lost, rest));
}

}  // namespace

Value* emitWideTrigonometric(const FloatCode& code, Trigonometric function, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  const auto [n, high, low] =
      callFunction(code, x, "vortex.math.reduce_f64", llvm::Attribute::AlwaysInline, reduceBranching);
  Value *sine = sineOf(code, high, low), *cosine = cosineOf(code, high, low);
  Value* isOdd = b.CreateICmpNE(b.CreateAnd(n, code.ci(1)), code.ci(0));
  Value* result;
  if (function == Trigonometric::Tan) {
    result = b.CreateSelect(isOdd, code.neg(code.div(cosine, sine)), code.div(sine, cosine));
  } else {
    bool isSine = function == Trigonometric::Sin;
    Value* value = isSine ? b.CreateSelect(isOdd, cosine, sine) : b.CreateSelect(isOdd, sine, cosine);
    Value* turned = isSine ? n : b.CreateAdd(n, code.ci(1));
    Value* isNegative = b.CreateICmpNE(b.CreateAnd(turned, code.ci(2)), code.ci(0));
    result = b.CreateSelect(isNegative, code.neg(value), value);
  }
  if (function != Trigonometric::Cos)  // −0 and subnormals stay as they are
    result = b.CreateSelect(b.CreateFCmpOLT(code.abs(x), code.c(0x1p-27)), x, result);
  Value* isFinite = b.CreateFCmpOLT(code.abs(x), code.infinity());
  return b.CreateSelect(isFinite, result, code.nan());
}

}  // namespace vortex::target::math
