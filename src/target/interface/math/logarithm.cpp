// log(x) = e·ln 2 + log1p(f), x = 2^e·(1 + f) with 1 + f in [√½, √2). The exponent is split off with integer arithmetic
// after scaling subnormals up. f32: log1p(f) = f − f²/2 + f³·P(f). f64: through s = f / (2 + f), log1p(f) = f − (f²/2 −
// s·(f²/2 + R(s²))). Base 2 in f32 has its own polynomial, so that powers of two are exact.
#include "target/interface/math/coefficients.h"
#include "target/interface/math/functions.h"

namespace vortex::target::math {
namespace {

using llvm::Value;
namespace k = coefficients;

struct Decomposed {
  Value* exponent;  ///< as a float
  Value* f;
};

Decomposed decompose(const FloatCode& code, Value* x) {
  const double scale = code.isDouble ? 0x1p54 : 0x1p25;
  const double smallest = code.isDouble ? 0x1p-1022 : 0x1p-126;
  Value* subnormal = code.b.CreateFCmpOLT(x, code.c(smallest));
  Value* scaled = code.b.CreateSelect(subnormal, code.mul(x, code.c(scale)), x);
  Value* correction = code.b.CreateSelect(subnormal, code.c(code.isDouble ? -54 : -25), code.c(0));
  // Subtracting the bits of √½ makes the exponent field of the difference the exponent relative to [√½, √2).
  const int64_t rootHalf = code.isDouble ? 0x3fe6a09e667f3bcdll : 0x3f3504f3;
  Value* shifted = code.b.CreateSub(code.bits(scaled), code.ci(rootHalf));
  Value* exponent = code.b.CreateAShr(shifted, code.ci(code.mantissaBits()));
  const int64_t mantissaMask = (int64_t(1) << code.mantissaBits()) - 1;
  Value* mantissa =
      code.fromBits(code.b.CreateAdd(code.b.CreateAnd(shifted, code.ci(mantissaMask)), code.ci(rootHalf)));
  Value* asFloat;
  if (code.isDouble) {  // AVX2 has no 64-bit integer conversion: place the integer in the mantissa of 1.5·2^52 instead
    Value* magic = code.bits(code.c(code.roundingMagic()));
    asFloat = code.sub(code.fromBits(code.b.CreateAdd(exponent, magic)), code.c(code.roundingMagic()));
  } else {
    asFloat = code.b.CreateSIToFP(exponent, code.type);
  }
  return {code.add(asFloat, correction), code.sub(mantissa, code.c(1))};
}

/// x > 0 finite keeps `result`; 0 → −∞, ∞ → ∞, negative or NaN → NaN.
Value* withSpecialCases(const FloatCode& code, Value* x, Value* result) {
  llvm::IRBuilderBase& b = code.b;
  result = b.CreateSelect(b.CreateFCmpOLT(x, code.infinity()), result, x);  // infinity, NaN
  result = b.CreateSelect(b.CreateFCmpOLT(x, code.c(0)), code.nan(), result);
  return b.CreateSelect(b.CreateFCmpOEQ(x, code.c(0)), code.neg(code.infinity()), result);
}

/// log1p(f) as f + the returned tail.
Value* log1pTail(const FloatCode& code, Value* f) {
  Value* square = code.mul(f, f);
  if (!code.isDouble)
    return code.mul(square, code.fma(f, code.polynomial(f, k::kLogTail32), code.c(-0.5)));
  Value* s = code.div(f, code.add(f, code.c(2)));
  Value* z = code.mul(s, s);
  Value* half = code.mul(square, code.c(0.5));
  Value* r = code.mul(code.add(z, z), code.polynomial(z, k::kAtanhTail64));
  return code.fma(s, code.add(half, r), code.neg(half));
}

Value* logOfDecomposed(const FloatCode& code, const Decomposed& x) {
  const double high = code.isDouble ? k::kLn2Split64[0] : k::kLn2Split32[0];
  const double low = code.isDouble ? k::kLn2Split64[1] : k::kLn2Split32[1];
  Value* tail = code.fma(x.exponent, code.c(low), log1pTail(code, x.f));
  return code.fma(x.exponent, code.c(high), code.add(x.f, tail));
}

}  // namespace

Value* emitLog(const FloatCode& code, Value* x) {
  return withSpecialCases(code, x, logOfDecomposed(code, decompose(code, x)));
}

Value* emitLog2(const FloatCode& code, Value* x) {
  const Decomposed parts = decompose(code, x);
  Value* result;
  if (code.isDouble)  // log1p(f) · log2 e with the constant in two parts
    result = code.fma(code.add(parts.f, log1pTail(code, parts.f)), code.c(0x1.71547652b82fep+0), parts.exponent);
  else
    result = code.add(parts.exponent, code.fma(parts.f, code.polynomial(parts.f, k::kLog2Ratio32), parts.f));
  return withSpecialCases(code, x, result);
}

Value* emitLog10(const FloatCode& code, Value* x) {
  const Decomposed parts = decompose(code, x);
  const double high = code.isDouble ? k::kLog10Of2Split64[0] : k::kLog10Of2Split32[0];
  const double low = code.isDouble ? k::kLog10Of2Split64[1] : k::kLog10Of2Split32[1];
  // log10 e in two parts, so that the product with f is rounded once.
  const double whole = 0x1.bcb7b1526e50ep-2, split = code.isDouble ? whole : double(float(whole));
  const double rest = code.isDouble ? 0x1.95355baaafad3p-57 : whole - split;
  Value* tail = code.mul(log1pTail(code, parts.f), code.c(split));
  Value* fraction = code.fma(parts.f, code.c(split), code.fma(parts.f, code.c(rest), tail));
  Value* sum = code.fma(parts.exponent, code.c(low), fraction);
  return withSpecialCases(code, x, code.fma(parts.exponent, code.c(high), sum));
}

/// log(u) + c / u with u = 1 + x rounded and c what the rounding lost.
Value* emitLog1p(const FloatCode& code, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  Value* u = code.add(x, code.c(1));
  Value* lost = b.CreateSelect(b.CreateFCmpOGT(x, code.c(1)), code.sub(code.c(1), code.sub(u, x)),
                               code.sub(x, code.sub(u, code.c(1))));
  Decomposed parts = decompose(code, u);
  Value* result = code.add(logOfDecomposed(code, parts), code.div(lost, u));
  result = b.CreateSelect(b.CreateFCmpOLT(code.abs(x), code.c(0x1p-25)), x, result);
  return withSpecialCases(code, u, result);
}

}  // namespace vortex::target::math
