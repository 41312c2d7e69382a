// erf: |x| < 0.9: x + x·P(x²); beyond: 1 − exp(Q(|x|)), Q fitted to log(erfc). erfc: 1 − erf below 0.5, from there exp(−x²)·t·P(t) with
// t = 1 / (1 + 0.4 x) and the square in two parts. pow: 2^(y·log2|x|) in f64, whose 53 bits
// make the f32 result almost correctly rounded and its subnormals and overflow right by conversion; then C's special
// cases.
#include "target/interface/math/coefficients.h"
#include "target/interface/math/functions.h"

namespace vortex::target::math {

using llvm::Value;
namespace k = coefficients;

Value* emitErf(const FloatCode& code, Value* x) {
  Value* magnitude = code.abs(x);
  Value* small = code.fma(x, code.polynomial(code.mul(x, x), k::kErfShort32), x);
  Value* log2 = code.polynomial(code.atMost(magnitude, 4.0), k::kErfcLog2Short32);  // −27 … −2
  const FloatCode::WholeFactors n = code.roundQuotientToPower(log2, 1, 0);
  Value* r = code.sub(log2, n.whole);
  Value* root = code.fma(r, code.polynomial(r, k::kExp2Short32), code.c(1));
  Value* large = code.copysign(code.fma(code.neg(root), n.power, code.c(1)), x);
  return code.b.CreateSelect(code.b.CreateFCmpOLT(magnitude, code.c(0.9)), small, large);
}

/// What rounding x² lost.
static Value* lostBySquare(const FloatCode& code, Value* x, Value* square) {
  if (code.fused)
    return code.fma(x, x, code.neg(square));
  Value* high = code.fromBits(code.b.CreateAnd(code.bits(x), code.ci(~int64_t(0xfff))));
  Value* low = code.sub(x, high);
  Value* rest = code.add(code.sub(code.mul(high, high), square), code.mul(code.add(high, high), low));
  return code.add(rest, code.mul(low, low));
}

Value* emitErfc(const FloatCode& code, Value* x) {
  llvm::IRBuilderBase& b = code.b;
  Value* small = code.sub(code.c(1), code.fma(x, code.polynomial(code.mul(x, x), k::kErfRatio32), x));
  Value* magnitude = code.atMost(code.abs(x), 10.2);
  Value* square = code.mul(magnitude, magnitude);
  Value* lost = lostBySquare(code, magnitude, square);
  Value* t = code.div(code.c(1), code.fma(magnitude, code.c(0.4), code.c(1)));
  Value* scaled = code.mul(t, code.polynomial(t, k::kErfcTail32));
  Value* tail = code.mul(emitExpLimited(code, code.neg(square)), code.sub(scaled, code.mul(lost, scaled)));
  Value* large = b.CreateSelect(b.CreateFCmpOLT(x, code.c(0)), code.sub(code.c(2), tail), tail);
  return b.CreateSelect(b.CreateFCmpOLT(magnitude, code.c(0.5)), small, large);
}

Value* emitPow(const FloatCode& code, Value* x, Value* y) {
  llvm::IRBuilderBase& b = code.b;
  Value* magnitude;
  {
    FloatCode wide(b, withScalar(code.type, b.getDoubleTy()));
    Value* log = emitLog2(wide, b.CreateFPExt(code.abs(x), wide.type));
    magnitude = b.CreateFPTrunc(emitExp2(wide, wide.mul(b.CreateFPExt(y, wide.type), log)), code.type);
  }
  Value *zero = code.c(0), *one = code.c(1);
  Value* unit = b.CreateAnd(b.CreateFCmpOEQ(code.abs(x), one), b.CreateFCmpORD(y, y));  // ±1 to ±∞ is 1
  magnitude = b.CreateSelect(unit, one, magnitude);
  Value* whole = b.CreateFCmpOEQ(b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, y), y);
  Value* half = code.mul(y, code.c(0.5));
  Value* odd = b.CreateAnd(whole, b.CreateFCmpONE(b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, half), half));
  Value* signedResult = code.copysign(magnitude, x);
  Value* result = b.CreateSelect(odd, signedResult, magnitude);
  Value* negative = b.CreateAnd(b.CreateFCmpOLT(x, zero), b.CreateFCmpOGT(x, code.neg(code.infinity())));
  result = b.CreateSelect(b.CreateAnd(negative, b.CreateNot(whole)), code.nan(), result);
  return b.CreateSelect(b.CreateOr(b.CreateFCmpOEQ(x, one), b.CreateFCmpOEQ(y, zero)), one, result);
}

}  // namespace vortex::target::math
