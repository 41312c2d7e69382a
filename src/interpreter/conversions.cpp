// Conversions of arith and vx on cells, and the choice of a cell function for an operation.
#include "interpreter/elementwise.h"
#include "ir/vx_checked.h"

#include "llvm/ADT/TypeSwitch.h"

namespace vortex::interpreter {

namespace arith = mlir::arith;

namespace {

template <auto F> void convert(const ElementCall& call) {
  for (size_t i = 0; i < call.count; ++i)
    call.out[0][i] = F(call.operand(0, i), call);
}

uint64_t keepLow(uint64_t bits, const ElementCall& call) { return bits & call.to.mask(); }
uint64_t extendSign(uint64_t bits, const ElementCall& call) {
  return uint64_t(signExtend(bits, call.from.width)) & call.to.mask();
}
uint64_t floatToFloat(uint64_t bits, const ElementCall& call) {
  return encode(call.to.format, decode(call.from.format, bits));
}
uint64_t signedToFloat(uint64_t bits, const ElementCall& call) {
  return encodeInteger(call.to.format, uint64_t(signExtend(bits, call.from.width)), true);
}
uint64_t unsignedToFloat(uint64_t bits, const ElementCall& call) { return encodeInteger(call.to.format, bits, false); }
uint64_t floatToSigned(uint64_t bits, const ElementCall& call) {
  return toInteger(decode(call.from.format, bits), call.to.width, false);
}
uint64_t floatToUnsigned(uint64_t bits, const ElementCall& call) {
  return toInteger(decode(call.from.format, bits), call.to.width, true);
}
uint64_t floatToInteger(uint64_t bits, const ElementCall& call) {
  return toInteger(decode(call.from.format, bits), call.to.width, call.detail != 0);
}

}  // namespace

ElementFunction findConversion(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, ElementFunction>(op)
      .Case<arith::ExtUIOp, arith::TruncIOp, arith::IndexCastUIOp, arith::BitcastOp>(
          [](auto) { return convert<keepLow>; })
      .Case<arith::ExtSIOp, arith::IndexCastOp>([](auto) { return convert<extendSign>; })
      .Case<arith::ExtFOp, arith::TruncFOp>([](auto) { return convert<floatToFloat>; })
      .Case<arith::SIToFPOp>([](auto) { return convert<signedToFloat>; })
      .Case<arith::UIToFPOp>([](auto) { return convert<unsignedToFloat>; })
      .Case<arith::FPToSIOp>([](auto) { return convert<floatToSigned>; })
      .Case<arith::FPToUIOp>([](auto) { return convert<floatToUnsigned>; })
      .Case<ir::FloatToIntOp>([](auto) { return convert<floatToInteger>; })
      .Default([](auto) { return nullptr; });
}

ElementKernel findElementKernel(mlir::Operation* op) {
  ElementKernel kernel;
  if (op->getNumOperands() == 0 || op->getNumOperands() > 3 || op->getNumResults() == 0)
    return kernel;
  auto from = elementOf(op->getOperand(llvm::isa<arith::SelectOp>(op) ? 1 : 0).getType());
  auto to = elementOf(op->getResult(0).getType());
  if (!from || !to)
    return kernel;
  kernel.from = *from;
  kernel.to = *to;
  for (auto find : {findIntegerFunction, findFloatFunction, findConversion})
    if (!kernel.function)
      kernel.function = find(op);
  kernel.detail =
      llvm::TypeSwitch<mlir::Operation*, int64_t>(op)
          .Case<arith::CmpIOp>([](auto cmp) { return int64_t(cmp.getPredicate()); })
          .Case<arith::CmpFOp>([](auto cmp) { return int64_t(cmp.getPredicate()); })
          .Case<ir::IntOp>([](auto integer) { return int64_t(integer.getKind()); })
          .Case<ir::CheckedAddOp, ir::CheckedSubOp, ir::CheckedMulOp>(
              [](auto checked) { return int64_t(checked.getIsUnsigned()); })
          .Case<ir::FloatToIntOp>([](auto cast) { return int64_t(cast.getIsUnsigned()); })
          .Case<mlir::math::FPowIOp>([](auto power) { return int64_t(elementOf(power.getRhs().getType())->width); })
          .Default([](auto) { return int64_t(0); });
  return kernel;
}

}  // namespace vortex::interpreter
