#include "target/interface/elementwise.h"

#include "analysis/float_bounds.h"
#include "ir/vx.h"
#include "target/interface/math/convert.h"
#include "target/interface/math/math.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/IR/TypeUtilities.h>

namespace vortex::target {
namespace {

namespace arith = mlir::arith;
namespace mm = mlir::math;
using llvm::Value;
using math::Binary;
using math::Unary;

/// As passes/narrow_math has marked it.
math::Form formOf(mlir::Operation* op) {
  auto bits = op->getAttrOfType<mlir::IntegerAttr>(ir::kNarrowAttr);
  if (!bits)
    return {.isSummed = op->hasAttr(kSummedAttr)};
  return {.narrowBits = static_cast<unsigned>(bits.getInt()),
          .mayFlush = op->hasAttr(ir::kMayFlushAttr),
          .isNormal = op->hasAttr(ir::kNormalAttr),
          .isFarFromOne = op->hasAttr(ir::kFarFromOneAttr)};
}

struct Lowering {
  llvm::IRBuilder<>& ir;
  const ScalarModel& model;
  mlir::Operation* op;
  llvm::ArrayRef<Value*> in;
  unsigned lanes;

  mlir::Type inputType(unsigned i) const { return mlir::getElementTypeOrSelf(op->getOperand(i).getType()); }
  mlir::Type resultType() const { return mlir::getElementTypeOrSelf(op->getResult(0).getType()); }
  llvm::Type* llvmType(mlir::Type type) const { return model.type(ir.getContext(), type, lanes); }

  /// Floats of any width as f32 or f64 LLVM values.
  Value* wide(unsigned i) { return model.widen(ir, inputType(i), in[i]); }
  /// f32 or f64 → the given float type.
  Value* narrow(Value* value, mlir::Type type) {
    llvm::Type* scalar = value->getType()->getScalarType();
    if (type.isF64())
      return scalar->isDoubleTy() ? value : ir.CreateFPExt(value, llvmType(type));
    if (type.isF32())
      return scalar->isDoubleTy() ? ir.CreateFPTrunc(value, llvmType(type)) : value;
    return model.narrow(ir, type, value);
  }

  Value* unary(Unary function) {
    Value* value = model.unary(ir, function, wide(0), formOf(op));
    return value ? narrow(value, resultType()) : nullptr;
  }
  Value* binary(Binary function) {
    Value* value = model.binary(ir, function, wide(0), wide(1));
    return value ? narrow(value, resultType()) : nullptr;
  }
  Value* intrinsic(llvm::Intrinsic::ID id) { return ir.CreateBinaryIntrinsic(id, in[0], in[1]); }
  Value* integer(math::IntOp kind, bool isSigned) { return math::emitInt(ir, kind, in[0], in[1], isSigned); }
  Value* toInt(bool isSigned) { return model.toInteger(ir, wide(0), llvmType(resultType()), isSigned); }
  Value* fromInt(bool isSigned) {
    mlir::Type type = resultType();
    const unsigned width = inputType(0).getIntOrFloatBitWidth();
    if (model.isNarrow(type) && width > 32)
      return narrow(math::emitIntToOdd(ir, in[0], isSigned), type);
    // i32 does not fit f32 exactly, but f64, from which narrow formats are rounded once.
    const bool viaDouble = type.isF64() || (model.isNarrow(type) && width > 16);
    llvm::Type* to = llvmType(type)->getWithNewType(viaDouble ? ir.getDoubleTy() : ir.getFloatTy());
    return narrow(isSigned ? ir.CreateSIToFP(in[0], to) : ir.CreateUIToFP(in[0], to), type);
  }
  Value* resize(bool isSigned) {
    llvm::Type* to = llvmType(resultType());
    return isSigned ? ir.CreateSExtOrTrunc(in[0], to) : ir.CreateZExtOrTrunc(in[0], to);
  }
  Value* bitCount(llvm::Intrinsic::ID id) {
    if (id == llvm::Intrinsic::ctpop)
      return ir.CreateUnaryIntrinsic(id, in[0]);
    return ir.CreateBinaryIntrinsic(id, in[0], ir.getFalse());
  }

  Value* emit();
  Value* emitIntegers();
  Value* emitFloats();
  Value* emitMath();
  Value* emitCasts();
  Value* emitCompare(arith::CmpIOp compare);
  Value* emitCompare(arith::CmpFOp compare);
  Value* emitIntKind(ir::IntKind kind);
  Value* ceilDiv(bool isSigned);
};

llvm::CmpInst::Predicate toLlvm(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq: return llvm::CmpInst::ICMP_EQ;
  case P::ne: return llvm::CmpInst::ICMP_NE;
  case P::slt: return llvm::CmpInst::ICMP_SLT;
  case P::sle: return llvm::CmpInst::ICMP_SLE;
  case P::sgt: return llvm::CmpInst::ICMP_SGT;
  case P::sge: return llvm::CmpInst::ICMP_SGE;
  case P::ult: return llvm::CmpInst::ICMP_ULT;
  case P::ule: return llvm::CmpInst::ICMP_ULE;
  case P::ugt: return llvm::CmpInst::ICMP_UGT;
  case P::uge: return llvm::CmpInst::ICMP_UGE;
  }
  return llvm::CmpInst::ICMP_EQ;
}

llvm::CmpInst::Predicate floatPredicate(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse: return llvm::CmpInst::FCMP_FALSE;
  case P::OEQ: return llvm::CmpInst::FCMP_OEQ;
  case P::OGT: return llvm::CmpInst::FCMP_OGT;
  case P::OGE: return llvm::CmpInst::FCMP_OGE;
  case P::OLT: return llvm::CmpInst::FCMP_OLT;
  case P::OLE: return llvm::CmpInst::FCMP_OLE;
  case P::ONE: return llvm::CmpInst::FCMP_ONE;
  case P::ORD: return llvm::CmpInst::FCMP_ORD;
  case P::UEQ: return llvm::CmpInst::FCMP_UEQ;
  case P::UGT: return llvm::CmpInst::FCMP_UGT;
  case P::UGE: return llvm::CmpInst::FCMP_UGE;
  case P::ULT: return llvm::CmpInst::FCMP_ULT;
  case P::ULE: return llvm::CmpInst::FCMP_ULE;
  case P::UNE: return llvm::CmpInst::FCMP_UNE;
  case P::UNO: return llvm::CmpInst::FCMP_UNO;
  case P::AlwaysTrue: return llvm::CmpInst::FCMP_TRUE;
  }
  return llvm::CmpInst::FCMP_FALSE;
}

Value* Lowering::emitCompare(arith::CmpIOp compare) {
  return ir.CreateICmp(toLlvm(compare.getPredicate()), in[0], in[1]);
}

Value* Lowering::emitCompare(arith::CmpFOp compare) {
  return ir.CreateFCmp(floatPredicate(compare.getPredicate()), wide(0), wide(1));
}

Value* Lowering::ceilDiv(bool isSigned) {
  Value* zero = llvm::Constant::getNullValue(in[0]->getType());
  Value* quotient = integer(math::IntOp::Div, isSigned);
  Value* rest = integer(math::IntOp::Mod, isSigned);
  Value* up = ir.CreateICmpNE(rest, zero);
  if (isSigned)  // the quotient was rounded toward zero: only positive ones round up
    up = ir.CreateAnd(up, ir.CreateICmpSGE(ir.CreateXor(rest, in[1]), zero));
  return ir.CreateAdd(quotient, ir.CreateZExt(up, in[0]->getType()));
}

Value* Lowering::emitIntKind(ir::IntKind kind) {
  using K = ir::IntKind;
  switch (kind) {
  case K::DivS: return integer(math::IntOp::Div, true);
  case K::DivU: return integer(math::IntOp::Div, false);
  case K::RemS: return integer(math::IntOp::Mod, true);
  case K::RemU: return integer(math::IntOp::Mod, false);
  case K::Shl: return integer(math::IntOp::Shl, false);
  case K::ShrS: return integer(math::IntOp::Shr, true);
  case K::ShrU: return integer(math::IntOp::Shr, false);
  case K::CeilDivU: return ceilDiv(false);
  }
  return nullptr;
}

Value* Lowering::emitIntegers() {
  return llvm::TypeSwitch<mlir::Operation*, Value*>(op)
      .Case([&](arith::AddIOp) { return ir.CreateAdd(in[0], in[1]); })
      .Case([&](arith::SubIOp) { return ir.CreateSub(in[0], in[1]); })
      .Case([&](arith::MulIOp) { return ir.CreateMul(in[0], in[1]); })
      .Case([&](arith::AndIOp) { return ir.CreateAnd(in[0], in[1]); })
      .Case([&](arith::OrIOp) { return ir.CreateOr(in[0], in[1]); })
      .Case([&](arith::XOrIOp) { return ir.CreateXor(in[0], in[1]); })
      .Case([&](arith::DivSIOp) { return integer(math::IntOp::Div, true); })
      .Case([&](arith::DivUIOp) { return integer(math::IntOp::Div, false); })
      .Case([&](arith::RemSIOp) { return integer(math::IntOp::Mod, true); })
      .Case([&](arith::RemUIOp) { return integer(math::IntOp::Mod, false); })
      .Case([&](arith::CeilDivSIOp) { return ceilDiv(true); })
      .Case([&](arith::CeilDivUIOp) { return ceilDiv(false); })
      .Case([&](arith::FloorDivSIOp) {
        Value* zero = llvm::Constant::getNullValue(in[0]->getType());
        Value* rest = integer(math::IntOp::Mod, true);
        Value* down = ir.CreateAnd(ir.CreateICmpNE(rest, zero), ir.CreateICmpSLT(ir.CreateXor(rest, in[1]), zero));
        return ir.CreateSub(integer(math::IntOp::Div, true), ir.CreateZExt(down, in[0]->getType()));
      })
      .Case([&](arith::ShLIOp) { return integer(math::IntOp::Shl, false); })
      .Case([&](arith::ShRSIOp) { return integer(math::IntOp::Shr, true); })
      .Case([&](arith::ShRUIOp) { return integer(math::IntOp::Shr, false); })
      .Case([&](arith::MaxSIOp) { return intrinsic(llvm::Intrinsic::smax); })
      .Case([&](arith::MaxUIOp) { return intrinsic(llvm::Intrinsic::umax); })
      .Case([&](arith::MinSIOp) { return intrinsic(llvm::Intrinsic::smin); })
      .Case([&](arith::MinUIOp) { return intrinsic(llvm::Intrinsic::umin); })
      .Case([&](arith::CmpIOp compare) { return emitCompare(compare); })
      .Case([&](arith::SelectOp) {
        bool scalarCondition = !in[0]->getType()->isVectorTy() && lanes > 1;
        return ir.CreateSelect(scalarCondition ? ir.CreateVectorSplat(lanes, in[0]) : in[0], in[1], in[2]);
      })
      .Case([&](arith::ConstantOp constant) { return model.constant(ir.getContext(), constant.getValue(), lanes); })
      .Case([&](ir::IntOp integerOp) { return emitIntKind(integerOp.getKind()); })
      .Default([](mlir::Operation*) -> Value* { return nullptr; });
}

Value* Lowering::emitFloats() {
  auto rounded = [&](Value* value) { return narrow(value, resultType()); };
  return llvm::TypeSwitch<mlir::Operation*, Value*>(op)
      .Case([&](arith::AddFOp) { return rounded(ir.CreateFAdd(wide(0), wide(1))); })
      .Case([&](arith::SubFOp) { return rounded(ir.CreateFSub(wide(0), wide(1))); })
      .Case([&](arith::MulFOp) { return rounded(ir.CreateFMul(wide(0), wide(1))); })
      .Case([&](arith::DivFOp) { return rounded(model.divide(ir, wide(0), wide(1), formOf(op))); })
      .Case([&](arith::RemFOp) { return binary(Binary::Mod); })
      .Case([&](arith::NegFOp) { return rounded(ir.CreateFNeg(wide(0))); })
      .Case([&](arith::MaximumFOp) { return binary(Binary::MaxNan); })
      .Case([&](arith::MinimumFOp) { return binary(Binary::MinNan); })
      .Case([&](arith::MaxNumFOp) { return binary(Binary::Max); })
      .Case([&](arith::MinNumFOp) { return binary(Binary::Min); })
      .Case([&](arith::CmpFOp compare) { return emitCompare(compare); })
      .Default([](mlir::Operation*) -> Value* { return nullptr; });
}

Value* Lowering::emitCasts() {
  return llvm::TypeSwitch<mlir::Operation*, Value*>(op)
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return narrow(wide(0), resultType()); })
      .Case<arith::ExtSIOp, arith::IndexCastOp>([&](auto) { return resize(true); })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp, arith::TruncIOp>([&](auto) { return resize(false); })
      .Case([&](arith::SIToFPOp) { return fromInt(true); })
      .Case([&](arith::UIToFPOp) { return fromInt(false); })
      .Case([&](arith::FPToSIOp) { return toInt(true); })
      .Case([&](arith::FPToUIOp) { return toInt(false); })
      .Case([&](ir::FloatToIntOp convert) { return toInt(!convert.getIsUnsigned()); })
      .Case([&](arith::BitcastOp) { return ir.CreateBitCast(in[0], llvmType(resultType())); })
      .Default([](mlir::Operation*) -> Value* { return nullptr; });
}

std::optional<Unary> unaryFunction(mlir::Operation* op) {
  return llvm::TypeSwitch<mlir::Operation*, std::optional<Unary>>(op)
#define VORTEX_FLOAT_CASE(id, name, op, ...) .Case([](op) { return Unary::id; })
      VORTEX_FLOAT_FUNCTIONS(VORTEX_FLOAT_CASE)
#undef VORTEX_FLOAT_CASE
          .Case([](mm::RoundEvenOp) { return Unary::RoundEven; })
          .Case([](mm::AbsFOp) { return Unary::Abs; })
          .Default([](mlir::Operation*) { return std::nullopt; });
}

Value* Lowering::emitMath() {
  if (mlir::isa<mm::ExpOp>(op))
    return unary(analysis::upperBound(op->getOperand(0)) <= math::kExpLimit ? Unary::ExpLimited
                 : analysis::isLostBelow(op->getResult(0), 0x1p-120)        ? Unary::ExpNotTiny
                                                                            : Unary::Exp);
  if (auto function = unaryFunction(op))
    return unary(*function);
  return llvm::TypeSwitch<mlir::Operation*, Value*>(op)
      .Case([&](mm::PowFOp) { return binary(Binary::Pow); })
      .Case([&](mm::Atan2Op) { return binary(Binary::Atan2); })
      .Case([&](mm::FmaOp) {
        Value* x = wide(0);
        return narrow(ir.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, wide(1), wide(2)}), resultType());
      })
      .Case([&](mm::CopySignOp) {
        return narrow(ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, wide(0), wide(1)), resultType());
      })
      .Case([&](mm::AbsIOp) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::abs, in[0], ir.getFalse()); })
      .Case([&](mm::CtPopOp) { return bitCount(llvm::Intrinsic::ctpop); })
      .Case([&](mm::CountLeadingZerosOp) { return bitCount(llvm::Intrinsic::ctlz); })
      .Case([&](mm::CountTrailingZerosOp) { return bitCount(llvm::Intrinsic::cttz); })
      .Default([](mlir::Operation*) -> Value* { return nullptr; });
}

llvm::FastMathFlags fastMathFlags(mlir::Operation* op) {
  llvm::FastMathFlags flags;
  auto fast = mlir::dyn_cast<arith::ArithFastMathInterface>(op);
  if (!fast || !fast.getFastMathFlagsAttr())
    return flags;
  arith::FastMathFlags given = fast.getFastMathFlagsAttr().getValue();
  auto has = [&](arith::FastMathFlags flag) { return arith::bitEnumContainsAll(given, flag); };
  flags.setAllowReassoc(has(arith::FastMathFlags::reassoc));
  flags.setNoNaNs(has(arith::FastMathFlags::nnan));
  flags.setNoInfs(has(arith::FastMathFlags::ninf));
  flags.setNoSignedZeros(has(arith::FastMathFlags::nsz));
  flags.setAllowReciprocal(has(arith::FastMathFlags::arcp));
  flags.setAllowContract(has(arith::FastMathFlags::contract));
  flags.setApproxFunc(has(arith::FastMathFlags::afn));
  return flags;
}

Value* Lowering::emit() {
  auto isSupported = [&](mlir::Type type) {
    type = mlir::getElementTypeOrSelf(type);
    return !mlir::isa<mlir::FloatType>(type) || type.isF32() || type.isF64() || model.isNarrow(type);
  };
  if (!llvm::all_of(op->getOperandTypes(), isSupported) || !isSupported(op->getResult(0).getType()))
    return nullptr;
  llvm::IRBuilder<>::FastMathFlagGuard guard(ir);
  ir.setFastMathFlags(fastMathFlags(op));
  if (Value* value = model.emitSpecial(ir, op, in))
    return value;
  if (Value* value = emitIntegers())
    return value;
  if (Value* value = emitFloats())
    return value;
  if (Value* value = emitCasts())
    return value;
  return emitMath();
}

}  // namespace

llvm::CmpInst::Predicate integerPredicate(mlir::Operation* compare) {
  return toLlvm(mlir::cast<arith::CmpIOp>(compare).getPredicate());
}

Value* ScalarModel::toInteger(llvm::IRBuilder<>& ir, Value* x, llvm::Type* type, bool isSigned) const {
  return math::emitFloatToInt(ir, x, type, isSigned);
}

bool isElementwise(mlir::Operation* op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0)
    return false;
  if (auto constant = mlir::dyn_cast<arith::ConstantOp>(op))
    return !mlir::isa<mlir::ElementsAttr>(constant.getValue()) ||
           mlir::isa<mlir::SplatElementsAttr>(constant.getValue());
  mlir::StringRef dialect = op->getDialect() ? op->getDialect()->getNamespace() : "";
  return dialect == "arith" || dialect == "math" || ir::isElementwise(op);
}

Value* emitElementwise(llvm::IRBuilder<>& ir, const ScalarModel& model, mlir::Operation* op,
                       llvm::ArrayRef<Value*> operands, unsigned lanes) {
  if (!isElementwise(op))
    return nullptr;
  return Lowering{ir, model, op, operands, lanes}.emit();
}

}  // namespace vortex::target
