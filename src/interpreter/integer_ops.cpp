// Integer operations of arith and math on cells.
#include "interpreter/elementwise.h"
#include "ir/vx_checked.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace vortex::interpreter {

namespace arith = mlir::arith;
namespace math = mlir::math;
using ir::IntKind;

namespace {

template <auto F> void integerUnary(const ElementCall& call) {
  unsigned width = call.from.width;
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] = F(call.operand(0, i), width) & call.to.mask();
}

template <auto F> void integerBinary(const ElementCall& call) {
  uint64_t mask = call.to.mask();
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] = F(call.operand(0, i), call.operand(1, i)) & mask;
}

template <auto F> void binarySigned(const ElementCall& call) {
  unsigned width = call.from.width;
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] =
        uint64_t(F(signExtend(call.operand(0, i), width), signExtend(call.operand(1, i), width))) & call.to.mask();
}

template <IntKind kind> void total(const ElementCall& call) {
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] = totalInteger(kind, call.from.width, call.operand(0, i), call.operand(1, i));
}

void vxInt(const ElementCall& call) {
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] = totalInteger(IntKind(call.detail), call.from.width, call.operand(0, i), call.operand(1, i));
}

bool compare(arith::CmpIPredicate predicate, uint64_t a, uint64_t b, unsigned width) {
  int64_t sa = signExtend(a, width), sb = signExtend(b, width);
  using enum arith::CmpIPredicate;
  switch (predicate) {
  case eq: return a == b;
  case ne: return a != b;
  case slt: return sa < sb;
  case sle: return sa <= sb;
  case sgt: return sa > sb;
  case sge: return sa >= sb;
  case ult: return a < b;
  case ule: return a <= b;
  case ugt: return a > b;
  case uge: return a >= b;
  }
  VORTEX_UNREACHABLE("predicate");
}

void compareIntegers(const ElementCall& call) {
  auto predicate = arith::CmpIPredicate(call.detail);
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] = compare(predicate, call.operand(0, i), call.operand(1, i), call.from.width);
}

void select(const ElementCall& call) {
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] = call.operand(0, i) ? call.operand(1, i) : call.operand(2, i);
}

/// Signed division with the remainder's sign deciding the rounding: +1 up, -1 down.
template <int direction> void roundedDivision(const ElementCall& call) {
  for (size_t i = 0; i < call.count; ++i) {
    unsigned width = call.from.width;
    int64_t a = signExtend(call.operand(0, i), width), b = signExtend(call.operand(1, i), width);
    uint64_t quotient = totalInteger(IntKind::DivS, width, call.operand(0, i), call.operand(1, i));
    bool inexact = b != 0 && b != -1 && a % b != 0;
    bool positive = (a < 0) == (b < 0);
    if (inexact && positive == (direction > 0))
      quotient += uint64_t(int64_t(direction));
    call.out[0][i] = quotient & call.to.mask();
  }
}

void addExtended(const ElementCall& call) {
  for (size_t i = 0; i < call.count; ++i) {
    uint64_t a = call.operand(0, i), sum = (a + call.operand(1, i)) & call.from.mask();
    call.out[0][i] = sum;
    call.out[1][i] = sum < a;
  }
}

template <bool isSigned> void multiplyExtended(const ElementCall& call) {
  unsigned width = call.from.width;
  for (size_t i = 0; i < call.count; ++i) {
    uint64_t a = call.operand(0, i), b = call.operand(1, i);
    unsigned __int128 product = isSigned ? (unsigned __int128)((__int128)signExtend(a, width) * signExtend(b, width))
                                         : (unsigned __int128)a * b;
    call.out[0][i] = uint64_t(product) & call.from.mask();
    call.out[1][i] = uint64_t(product >> width) & call.from.mask();
  }
}

void power(const ElementCall& call) {
  for (size_t i = 0; i < call.count; ++i) {
    uint64_t base = call.operand(0, i), result = 1, mask = call.to.mask();
    int64_t exponent = signExtend(call.operand(1, i), call.from.width);
    if (exponent < 0) {  // 1 / base^n toward zero: only ±1 leave something
      int64_t value = signExtend(base, call.from.width);
      result = value == 1 ? 1 : value == -1 ? (exponent & 1 ? mask : 1) : 0;
      exponent = 0;
    }
    for (; exponent; exponent >>= 1, base = (base * base) & mask)
      if (exponent & 1)
        result = (result * base) & mask;
    call.out[0][i] = result;
  }
}

uint64_t leadingZeros(uint64_t value, unsigned width) { return uint64_t(std::countl_zero(value)) - (64 - width); }
uint64_t trailingZeros(uint64_t value, unsigned width) { return value ? uint64_t(std::countr_zero(value)) : width; }

ElementFunction findMathInteger(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, ElementFunction>(op)
      .Case<math::AbsIOp>(
          [](auto) { return integerUnary<[](uint64_t x, unsigned w) { return signExtend(x, w) < 0 ? 0 - x : x; }>; })
      .Case<math::CtPopOp>(
          [](auto) { return integerUnary<[](uint64_t x, unsigned) { return uint64_t(std::popcount(x)); }>; })
      .Case<math::CountLeadingZerosOp>([](auto) { return integerUnary<leadingZeros>; })
      .Case<math::CountTrailingZerosOp>([](auto) { return integerUnary<trailingZeros>; })
      .Case<math::IPowIOp>([](auto) { return power; })
      .Default([](auto) { return nullptr; });
}

ElementFunction findDivision(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, ElementFunction>(op)
      .Case<arith::DivSIOp>([](auto) { return total<IntKind::DivS>; })
      .Case<arith::DivUIOp>([](auto) { return total<IntKind::DivU>; })
      .Case<arith::RemSIOp>([](auto) { return total<IntKind::RemS>; })
      .Case<arith::RemUIOp>([](auto) { return total<IntKind::RemU>; })
      .Case<arith::CeilDivUIOp>([](auto) { return total<IntKind::CeilDivU>; })
      .Case<arith::CeilDivSIOp>([](auto) { return roundedDivision<1>; })
      .Case<arith::FloorDivSIOp>([](auto) { return roundedDivision<-1>; })
      .Case<arith::ShLIOp>([](auto) { return total<IntKind::Shl>; })
      .Case<arith::ShRSIOp>([](auto) { return total<IntKind::ShrS>; })
      .Case<arith::ShRUIOp>([](auto) { return total<IntKind::ShrU>; })
      .Case<ir::IntOp>([](auto) { return vxInt; })
      .Default([](auto) { return nullptr; });
}

}  // namespace

ElementFunction findIntegerFunction(mlir::Operation* op) {
  if (ElementFunction function = findDivision(op))
    return function;
  if (ElementFunction function = findMathInteger(op))
    return function;
  return llvm::TypeSwitch<mlir::Operation*, ElementFunction>(op)
      .Case<arith::AddIOp, ir::CheckedAddOp>(
          [](auto) { return integerBinary<[](uint64_t a, uint64_t b) { return a + b; }>; })
      .Case<arith::SubIOp, ir::CheckedSubOp>(
          [](auto) { return integerBinary<[](uint64_t a, uint64_t b) { return a - b; }>; })
      .Case<arith::MulIOp, ir::CheckedMulOp>(
          [](auto) { return integerBinary<[](uint64_t a, uint64_t b) { return a * b; }>; })
      .Case<arith::AndIOp>([](auto) { return integerBinary<[](uint64_t a, uint64_t b) { return a & b; }>; })
      .Case<arith::OrIOp>([](auto) { return integerBinary<[](uint64_t a, uint64_t b) { return a | b; }>; })
      .Case<arith::XOrIOp>([](auto) { return integerBinary<[](uint64_t a, uint64_t b) { return a ^ b; }>; })
      .Case<arith::MaxUIOp>([](auto) { return integerBinary<[](uint64_t a, uint64_t b) { return a > b ? a : b; }>; })
      .Case<arith::MinUIOp>([](auto) { return integerBinary<[](uint64_t a, uint64_t b) { return a < b ? a : b; }>; })
      .Case<arith::MaxSIOp>([](auto) { return binarySigned<[](int64_t a, int64_t b) { return a > b ? a : b; }>; })
      .Case<arith::MinSIOp>([](auto) { return binarySigned<[](int64_t a, int64_t b) { return a < b ? a : b; }>; })
      .Case<arith::AddUIExtendedOp>([](auto) { return addExtended; })
      .Case<arith::MulSIExtendedOp>([](auto) { return multiplyExtended<true>; })
      .Case<arith::MulUIExtendedOp>([](auto) { return multiplyExtended<false>; })
      .Case<arith::CmpIOp>([](auto) { return compareIntegers; })
      .Case<arith::SelectOp>([](auto) { return select; })
      .Default([](auto) { return nullptr; });
}

}  // namespace vortex::interpreter
