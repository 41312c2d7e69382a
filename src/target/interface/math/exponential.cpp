// exp(x) = 2^n · exp(r), n = round(x / ln 2), r = x − n·ln 2 in two parts (Cody and Waite), exp(r) = 1 + r + r²·P(r).
// Two multiplications apply 2^n, so subnormal results and the last binade come out of the same code, rounded once.
//
// exp in f32 takes n even: 2^n is then the square of a float that one shift makes, where two different factors cost five more
// instructions; the price is one more coefficient. 17 instructions with FMA, about 9 cycles for 8 elements on Zen 3. Even and odd
// coefficients are summed apart (Estrin): the chain, not the count, bounds loops that run over a few vectors at a time.
// A table-driven form saves two multiplications and costs a gather.
#include "target/interface/math/coefficients.h"
#include "target/interface/math/functions.h"

namespace vortex::target::math {
namespace {

using llvm::Value;
namespace k = coefficients;

struct Reduced {
  Value* n;  ///< integer
  Value* r;
};

Reduced reduceByLn2(const FloatCode& code, Value* x) {
  const FloatCode::Whole whole = code.roundQuotient(x, 0x1.71547652b82fep+0);
  const double high = code.isDouble ? k::kLn2Split64[0] : k::kLn2Split32[0];
  const double low = code.isDouble ? k::kLn2Split64[1] : k::kLn2Split32[1];
  Value* r = code.fma(whole.whole, code.c(-high), x);
  return {whole.wholeBits, code.fma(whole.whole, code.c(-low), r)};
}

/// exp(r) − 1 for |r| ≤ ln 2 / 2
Value* expm1Reduced(const FloatCode& code, Value* r) {
  Value* tail = code.isDouble ? code.polynomial(r, k::kExpTail64) : code.polynomial(r, k::kExpTail32);
  return code.fma(code.mul(r, r), tail, r);
}

}  // namespace

/// exp(x) = 4^n · exp(r), |r| ≤ ln 2.
static Value* emitExpSquared(const FloatCode& code, Value* x) {
  x = code.atMost(code.atLeast(x, -105.0), 90.0);
  const auto [whole, power] = code.roundQuotientToPower(x, 0x1.71547652b82fep-1);
  Value* r = code.fma(whole, code.c(-2.0 * k::kLn2Split32[0]), x);
  r = code.fma(whole, code.c(-2.0 * k::kLn2Split32[1]), r);
  Value* square = code.mul(r, r);
  Value* sum = code.estrin(r, square, k::kExpWide32);
  // (1 + r) + r²·P(r): one step less in the chain. Without FMA its roundings add up to 2.02 ULP; 1 + r·(1 + r·P(r)) has 1.88.
  Value* one = code.c(1);
  Value* mantissa = code.fused ? code.fma(sum, square, code.add(r, one)) : code.fma(code.fma(sum, r, one), r, one);
  return code.mul(code.mul(mantissa, power), power);
}

Value* emitExp(const FloatCode& code, Value* x) {
  if (!code.isDouble)
    return emitExpSquared(code, x);
  x = code.atMost(code.atLeast(x, -750.0), 711.0);
  const Reduced reduced = reduceByLn2(code, x);
  return code.scale(code.add(expm1Reduced(code, reduced.r), code.c(1)), reduced.n);
}

Value* emitExp2(const FloatCode& code, Value* x) {
  x = code.atMost(code.atLeast(x, code.isDouble ? -1080.0 : -152.0), code.isDouble ? 1026.0 : 130.0);
  const FloatCode::Whole whole = code.roundQuotient(x, 1);
  Value* r = code.sub(x, whole.whole);
  Value* tail = code.isDouble ? code.polynomial(r, k::kExp2Tail64) : code.polynomial(r, k::kExp2Tail32);
  return code.scale(code.fma(r, tail, code.c(1)), whole.wholeBits);
}

/// 2^n·(exp(r) − 1) + (2^n − 1), with half the scale so that the last binade does not overflow early.
Value* emitExpm1(const FloatCode& code, Value* x) {
  Value* clamped =
      code.atMost(code.atLeast(x, code.isDouble ? -40.0 : -20.0), code.isDouble ? 709.9 : 89.0);  // n ≤ 1024, 128
  const Reduced reduced = reduceByLn2(code, clamped);
  Value* half = code.powerOfTwo(code.b.CreateSub(reduced.n, code.ci(1)));
  Value* sum = code.fma(half, expm1Reduced(code, reduced.r), code.sub(half, code.c(0.5)));
  Value* result = code.mul(sum, code.c(2));
  // Keeps −0 and subnormals.
  return code.b.CreateSelect(code.b.CreateFCmpOLT(code.abs(x), code.c(code.isDouble ? 0x1p-54 : 0x1p-25)), x, result);
}

/// |x| < 0.625: x + x³·P(x²). Beyond: 1 − 2 / (exp(2|x|) + 1), which rounds to 1 from |x| = 9.02 on.
Value* emitTanh(const FloatCode& code, Value* x) {
  Value* magnitude = code.abs(x);
  Value* square = code.mul(x, x);
  Value* small = code.fma(code.mul(square, x), code.polynomial(square, k::kTanhTail32), x);
  Value* limited = code.atMost(magnitude, 10.0);
  const Reduced reduced = reduceByLn2(code, code.add(limited, limited));
  Value* exp = code.mul(code.add(expm1Reduced(code, reduced.r), code.c(1)), code.powerOfTwo(reduced.n));
  Value* large = code.sub(code.c(1), code.div(code.c(2), code.add(exp, code.c(1))));
  return code.b.CreateSelect(code.b.CreateFCmpOLT(magnitude, code.c(0.625)), small, code.copysign(large, x));
}

/// With t = exp(−|x|), which cannot overflow: 1 / (1 + t) for x ≥ 0, t / (1 + t) below.
Value* emitSigmoid(const FloatCode& code, Value* x) {
  Value* t = emitExp(code, code.neg(code.abs(x)));
  Value* numerator = code.b.CreateSelect(code.b.CreateFCmpOLT(x, code.c(0)), t, code.c(1));
  return code.div(numerator, code.add(t, code.c(1)));
}

}  // namespace vortex::target::math
