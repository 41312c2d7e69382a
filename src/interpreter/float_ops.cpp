// Float operations of arith and math on cells. All are evaluated in double and rounded once to the type: for + - * / and sqrt of formats of
// up to 24 bits this equals the correctly rounded operation (53 >= 2 * 24 + 2), for math functions it is far below half an ulp off.
#include "base/float_functions.h"
#include "interpreter/elementwise.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

namespace vortex::interpreter {

namespace arith = mlir::arith;
namespace math = mlir::math;

namespace {

template <auto F> void floatUnary(const ElementCall& call) {
  Format from = call.from.format, to = call.to.format;
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] = encode(to, F(decode(from, call.operand(0, i))));
}

template <auto F> void floatBinary(const ElementCall& call) {
  if (call.from.format == Format::F32) {  // the common case without a call per element
    for (size_t i = 0; i < call.count; ++i) {
      double a = std::bit_cast<float>(uint32_t(call.operand(0, i))),
             b = std::bit_cast<float>(uint32_t(call.operand(1, i)));
      call.out[0][i] = std::bit_cast<uint32_t>(float(F(a, b)));
    }
    return;
  }
  Format from = call.from.format, to = call.to.format;
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] = encode(to, F(decode(from, call.operand(0, i)), decode(from, call.operand(1, i))));
}

void fused(const ElementCall& call) {
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] = fusedMultiplyAdd(call.from, call.operand(0, i), call.operand(1, i), call.operand(2, i));
}

/// Sign-bit operations keep NaN payloads.
template <auto F> void onSign(const ElementCall& call) {
  uint64_t sign = uint64_t(1) << (call.from.width - 1);
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] = F(call.operand(0, i), call.in[1] ? call.operand(1, i) : 0, sign);
}

double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::nan("");
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
double minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::nan("");
  return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}
double maximumNumber(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : maximum(a, b); }
double minimumNumber(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : minimum(a, b); }
double roundHalfEven(double x) { return std::nearbyint(x); }

bool compare(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  using enum arith::CmpFPredicate;
  switch (predicate) {
  case AlwaysFalse: return false;
  case AlwaysTrue: return true;
  case ORD: return !unordered;
  case UNO: return unordered;
  case OEQ: return a == b;
  case OGT: return a > b;
  case OGE: return a >= b;
  case OLT: return a < b;
  case OLE: return a <= b;
  case ONE: return !unordered && a != b;
  case UEQ: return unordered || a == b;
  case UGT: return unordered || a > b;
  case UGE: return unordered || a >= b;
  case ULT: return unordered || a < b;
  case ULE: return unordered || a <= b;
  case UNE: return unordered || a != b;
  }
  VORTEX_UNREACHABLE("predicate");
}

void compareFloats(const ElementCall& call) {
  auto predicate = arith::CmpFPredicate(call.detail);
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] =
        compare(predicate, decode(call.from.format, call.operand(0, i)), decode(call.from.format, call.operand(1, i)));
}

void integerPower(const ElementCall& call) {
  unsigned width = unsigned(call.detail);
  for (size_t i = 0; i < call.count; ++i) {
    double base = decode(call.from.format, call.operand(0, i));
    call.out[0][i] = encode(call.to.format, std::pow(base, double(signExtend(call.operand(1, i), width))));
  }
}

ElementFunction findMath(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, ElementFunction>(op)
#define VORTEX_FLOAT_CASE(id, name, op, function, ...)                                                                 \
  .Case<op>([](auto) { return floatUnary<[](double x) { return function(x); }>; })
      VORTEX_FLOAT_FUNCTIONS(VORTEX_FLOAT_CASE)
#undef VORTEX_FLOAT_CASE
          .Case<math::RoundEvenOp>([](auto) { return floatUnary<roundHalfEven>; })
          .Case<math::PowFOp>([](auto) { return floatBinary<[](double a, double b) { return std::pow(a, b); }>; })
          .Case<math::FPowIOp>([](auto) { return integerPower; })
          .Case<math::FmaOp>([](auto) { return fused; })
          .Case<math::AbsFOp>(
              [](auto) { return onSign<[](uint64_t a, uint64_t, uint64_t sign) { return a & ~sign; }>; })
          .Case<math::CopySignOp>([](auto) {
            return onSign<[](uint64_t a, uint64_t b, uint64_t sign) { return (a & ~sign) | (b & sign); }>;
          })
          .Default([](auto) { return nullptr; });
}

ElementFunction findTrigonometry(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, ElementFunction>(op)
      .Case<math::AsinhOp>([](auto) { return floatUnary<[](double x) { return std::asinh(x); }>; })
      .Case<math::AcoshOp>([](auto) { return floatUnary<[](double x) { return std::acosh(x); }>; })
      .Case<math::AtanhOp>([](auto) { return floatUnary<[](double x) { return std::atanh(x); }>; })
      .Case<math::Atan2Op>([](auto) { return floatBinary<[](double a, double b) { return std::atan2(a, b); }>; })
      .Default([](auto) { return nullptr; });
}

}  // namespace

ElementFunction findFloatFunction(mlir::Operation* op) {
  if (ElementFunction function = findMath(op))
    return function;
  if (ElementFunction function = findTrigonometry(op))
    return function;
  return llvm::TypeSwitch<mlir::Operation*, ElementFunction>(op)
      .Case<arith::AddFOp>([](auto) { return floatBinary<[](double a, double b) { return a + b; }>; })
      .Case<arith::SubFOp>([](auto) { return floatBinary<[](double a, double b) { return a - b; }>; })
      .Case<arith::MulFOp>([](auto) { return floatBinary<[](double a, double b) { return a * b; }>; })
      .Case<arith::DivFOp>([](auto) { return floatBinary<[](double a, double b) { return a / b; }>; })
      .Case<arith::RemFOp>([](auto) { return floatBinary<[](double a, double b) { return std::fmod(a, b); }>; })
      .Case<arith::NegFOp>([](auto) { return onSign<[](uint64_t a, uint64_t, uint64_t sign) { return a ^ sign; }>; })
      .Case<arith::MaximumFOp>([](auto) { return floatBinary<maximum>; })
      .Case<arith::MinimumFOp>([](auto) { return floatBinary<minimum>; })
      .Case<arith::MaxNumFOp>([](auto) { return floatBinary<maximumNumber>; })
      .Case<arith::MinNumFOp>([](auto) { return floatBinary<minimumNumber>; })
      .Case<arith::CmpFOp>([](auto) { return compareFloats; })
      .Default([](auto) { return nullptr; });
}

}  // namespace vortex::interpreter
