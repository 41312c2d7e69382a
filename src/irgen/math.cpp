// Elementwise builtins.
#include "irgen/arithmetic.h"

#include <limits>

namespace vortex::irgen {

using lang::BinaryOp;
using lang::Builtin;
using lang::Scalar;
using mlir::Location;
using mlir::Value;
namespace arith = mlir::arith;
namespace math = mlir::math;

Value Arithmetic::elementaryFunction(Location loc, Builtin builtin, mlir::ValueRange args) const {
  Value x = args[0];
  switch (builtin) {
#define VORTEX_FLOAT_CASE(id, name, op, ...)                                                                           \
  case Builtin::id: return b_.create<op>(loc, x, flags_);
    VORTEX_FLOAT_FUNCTIONS(VORTEX_FLOAT_CASE)
#undef VORTEX_FLOAT_CASE
  case Builtin::Atan2: return b_.create<math::Atan2Op>(loc, x, args[1], flags_);
  default: return {};
  }
}

/// Upper half of a product, from products of halves of w/2 bits. A negative signed factor counts 2^w too much.
/// arith.mul*i_extended would do, but it has two results and the CPU back end maps one element to one element.
Value Arithmetic::productHigh(Location loc, Scalar kind, Value x, Value y) const {
  auto mul = [&](Value a, Value b) -> Value { return b_.create<arith::MulIOp>(loc, a, b); };
  auto add = [&](Value a, Value b) -> Value { return b_.create<arith::AddIOp>(loc, a, b); };
  Value half = constantLike(loc, x, bitWidth(kind) / 2);
  auto upper = [&](Value a) -> Value { return b_.create<arith::ShRUIOp>(loc, a, half); };
  auto lower = [&](Value a) -> Value { return upper(b_.create<arith::ShLIOp>(loc, a, half)); };
  Value middle = add(mul(upper(x), lower(y)), upper(mul(lower(x), lower(y))));
  Value other = add(mul(lower(x), upper(y)), lower(middle));
  Value high = add(add(mul(upper(x), upper(y)), upper(middle)), upper(other));
  if (isUnsigned(kind))
    return high;
  Value zero = constantLike(loc, x, 0);
  auto excess = [&](Value a, Value b) -> Value {
    return b_.create<arith::SelectOp>(loc, binary(loc, BinaryOp::Lt, kind, a, zero), b, zero);
  };
  return b_.create<arith::SubIOp>(loc, high, add(excess(x, y), excess(y, x)));
}

Value Arithmetic::bitFunction(Location loc, Builtin builtin, Scalar kind, mlir::ValueRange args) const {
  if (kind == Scalar::Usize) {  // math works on sized integers
    llvm::SmallVector<Value> words;
    for (Value arg : args)
      words.push_back(fromIndex(loc, arg, Scalar::U64));
    Value result = bitFunction(loc, builtin, Scalar::U64, words);
    return result ? toIndex(loc, result, Scalar::U64) : result;
  }
  switch (builtin) {
  case Builtin::Popcount: return b_.create<math::CtPopOp>(loc, args[0]);
  case Builtin::Clz: return b_.create<math::CountLeadingZerosOp>(loc, args[0]);
  case Builtin::Ctz: return b_.create<math::CountTrailingZerosOp>(loc, args[0]);
  case Builtin::MulHi: return productHigh(loc, kind, args[0], args[1]);
  default: return {};
  }
}

Value Arithmetic::composedFunction(Location loc, Builtin builtin, Scalar kind, mlir::ValueRange args) const {
  Value x = args[0];
  switch (builtin) {
  case Builtin::Abs:
    if (isFloat(kind))
      return b_.create<math::AbsFOp>(loc, x, flags_);
    return isUnsigned(kind) ? x : Value(b_.create<math::AbsIOp>(loc, x));
  case Builtin::Sign: {
    Value zero = constantLike(loc, x, 0), one = constantLike(loc, x, 1);
    Value isPositive = binary(loc, BinaryOp::Gt, kind, x, zero);
    if (isUnsigned(kind))
      return b_.create<arith::SelectOp>(loc, isPositive, one, zero);
    Value isNegative = binary(loc, BinaryOp::Lt, kind, x, zero);
    Value other = b_.create<arith::SelectOp>(loc, isNegative, constantLike(loc, x, -1), x);  // 0, -0 and NaN stay
    return b_.create<arith::SelectOp>(loc, isPositive, one, other);
  }
  case Builtin::Min: return combine(loc, minCombine(kind), x, args[1]);
  case Builtin::Max: return combine(loc, maxCombine(kind), x, args[1]);
  case Builtin::Clamp: return combine(loc, minCombine(kind), combine(loc, maxCombine(kind), x, args[1]), args[2]);
  case Builtin::Pow: return power(loc, x, kind, args[1]);
  case Builtin::IsNan: return b_.create<arith::CmpFOp>(loc, arith::CmpFPredicate::UNO, x, x);
  case Builtin::IsInf: {
    Value magnitude = b_.create<math::AbsFOp>(loc, x);
    return binary(loc, BinaryOp::Eq, kind, magnitude, constantLike(loc, x, std::numeric_limits<double>::infinity()));
  }
  case Builtin::CeilDiv: {
    if (isUnsigned(kind))
      return vxInt(loc, ir::IntKind::CeilDivU, x, args[1]);
    Value quotient = vxInt(loc, ir::IntKind::DivS, x, args[1]), zero = constantLike(loc, x, 0);
    Value remainder = vxInt(loc, ir::IntKind::RemS, x, args[1]);
    Value signs = b_.create<arith::XOrIOp>(loc, x, args[1]);
    Value roundsUp = b_.create<arith::AndIOp>(loc, binary(loc, BinaryOp::Ge, kind, signs, zero),
                                              binary(loc, BinaryOp::Ne, kind, remainder, zero));
    Value next = b_.create<arith::AddIOp>(loc, quotient, constantLike(loc, x, 1));
    return b_.create<arith::SelectOp>(loc, roundsUp, next, quotient);
  }
  default: return {};
  }
}

Value Arithmetic::call(Location loc, Builtin builtin, Scalar kind, mlir::ValueRange args) const {
  if (builtin == Builtin::Fma) {
    if (isFloat(kind))
      return b_.create<math::FmaOp>(loc, args[0], args[1], args[2], flags_);
    return b_.create<arith::AddIOp>(loc, b_.create<arith::MulIOp>(loc, args[0], args[1]), args[2]);
  }
  if (builtin == Builtin::Select)
    return b_.create<arith::SelectOp>(loc, args[0], args[1], args[2]);
  if (builtin == Builtin::IsNan || builtin == Builtin::IsInf || !isFloat(kind) || builtin == Builtin::Abs)
    if (Value result = composedFunction(loc, builtin, kind, args))
      return result;
  if (isFloat(kind)) {
    if (Value result = elementaryFunction(loc, builtin, args))
      return result;
    return composedFunction(loc, builtin, kind, args);
  }
  switch (builtin) {  // integers are their own floor
  case Builtin::Floor:
  case Builtin::Ceil:
  case Builtin::Round:
  case Builtin::Trunc: return args[0];
  default: return bitFunction(loc, builtin, kind, args);
  }
}

}  // namespace vortex::irgen
