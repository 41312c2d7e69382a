// exp(x) = 2^n · exp(r), n = round(x / ln 2), r = x − n·ln 2 in two parts (Cody and Waite), exp(r) a polynomial. Two multiplications apply
// 2^n, so subnormal results and the last binade come out of the same code, rounded once.
//
// What counts on AVX2 machines is the number of instructions that multiply (two pipes; additions, limits and integers have others): 10 of 17
// in f32. Where the argument is known to be at most kExpLimit (softmax, sigmoid), 2^n · 2^64 is always a normal number that one shift makes
// and the coefficients hold 2^-64: 9 of 13; likewise where results below 2^-125 do not count. Horner's scheme, because vectors side by side hide its chain. A table of 4 or 8 powers saves
// coefficients, but its shuffle runs on the pipes that multiply. Square of a power instead of two factors: one more coefficient.
#include "target/interface/math/coefficients.h"
#include "target/interface/math/functions.h"

#include <cmath>

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

namespace {

/// 1 + r + …, |r| ≤ ln 2 / 2, times `scale`, a power of two. `early`: r within 3e-7, at hand sooner.
Value* expPolynomial32(const FloatCode& code, Value* r, Value* early, double scale) {
  auto horner = [&](std::span<const float> coefficients) {
    Value* sum = code.c(scale * coefficients.back());
    for (size_t i = coefficients.size() - 1; i-- > 0;)
      sum = code.fma(sum, i < 2 ? r : early, code.c(scale * coefficients[i]));
    return sum;
  };
  if (code.narrow)
    return horner(k::kExpNarrow32);
  // One coefficient less would be 2.6 ULP with the additional roundings of separate multiplications.
  return code.fused ? horner(k::kExp32) : code.fma(code.fma(horner(k::kExpTail32), r, code.c(scale)), r, code.c(scale));
}

/// The exponents n that can occur: 2^n is one factor unless both ends can.
enum class Exponents { All, NotLarge, NotTiny };

Value* emitExp32(const FloatCode& code, Value* x, Exponents exponents) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  // power = 2^(n + shift) is normal: n = -152 … 63 with x ≤ kExpLimit, -125 … 128 without tiny results.
  const int64_t shift = exponents == Exponents::NotLarge ? 64 : exponents == Exponents::NotTiny ? -1 : 0;
  x = code.atLeast(x, exponents == Exponents::NotTiny ? -86.6 : -105.0);
  if (exponents != Exponents::NotLarge)
    x = code.atMost(x, 89.0);
  const FloatCode::WholeFactors n =
      shift ? code.roundQuotientToPower(x, kLog2E, shift) : code.roundQuotientToFactors(x, kLog2E);
  // A fused product is exact before the addition: the high part can have all bits, and the low one is late but small.
  const float* ln2 = code.fused || code.narrow ? k::kLn2Fused32 : k::kLn2Split32;
  Value* early = code.fma(n.whole, code.c(-ln2[0]), x);
  Value* r = code.narrow ? early : code.fma(n.whole, code.c(-ln2[1]), early);
  Value* mantissa = expPolynomial32(code, r, code.fused ? early : r, std::ldexp(1.0, -int(shift)));
  Value* scaled = code.mul(mantissa, n.power);
  return n.rest ? code.mul(scaled, n.rest) : scaled;
}

}  // namespace

Value* emitExp(const FloatCode& code, Value* x) {
  if (!code.isDouble)
    return emitExp32(code, x, Exponents::All);
  x = code.atMost(code.atLeast(x, -750.0), 711.0);
  const FloatCode::WholeFactors n = code.roundQuotientToFactors(x, 0x1.71547652b82fep+0);
  Value* r = code.fma(n.whole, code.c(-k::kLn2Split64[1]), code.fma(n.whole, code.c(-k::kLn2Split64[0]), x));
  return code.mul(code.mul(code.add(expm1Reduced(code, r), code.c(1)), n.power), n.rest);
}

Value* emitExpLimited(const FloatCode& code, Value* x) {
  return code.isDouble ? emitExp(code, x) : emitExp32(code, x, Exponents::NotLarge);
}

Value* emitExpNotTiny(const FloatCode& code, Value* x) {
  return code.isDouble ? emitExp(code, x) : emitExp32(code, x, Exponents::NotTiny);
}

Value* emitExp2(const FloatCode& code, Value* x) {
  x = code.atMost(code.atLeast(x, code.isDouble ? -1080.0 : -152.0), code.isDouble ? 1026.0 : 130.0);
  const FloatCode::WholeFactors n = code.roundQuotientToFactors(x, 1);
  Value* r = code.sub(x, n.whole);
  Value* tail = code.isDouble ? code.polynomial(r, k::kExp2Tail64) : code.polynomial(r, k::kExp2Tail32);
  return code.mul(code.mul(code.fma(r, tail, code.c(1)), n.power), n.rest);
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
  Value* chosen = code.b.CreateSelect(code.b.CreateFCmpOLT(magnitude, code.c(0.625)), small, large);
  return code.copysign(chosen, x);  // of `small` too: its sum is +0 at -0
}

/// With t = exp(−|x|), which cannot overflow: 1 / (1 + t) for x ≥ 0, t / (1 + t) below.
Value* emitSigmoid(const FloatCode& code, Value* x) {
  Value* t = emitExpLimited(code, code.neg(code.abs(x)));
  Value* numerator = code.b.CreateSelect(code.b.CreateFCmpOLT(x, code.c(0)), t, code.c(1));
  return code.div(numerator, code.add(t, code.c(1)));
}

}  // namespace vortex::target::math
