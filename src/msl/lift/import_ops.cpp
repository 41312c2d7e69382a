// Arithmetic, one instruction at a time. What LLVM leaves undefined (division by zero, shifts by the width) is total in vx.
#include "msl/lift/importer.h"

#include <llvm/IR/Operator.h>

namespace vortex::msl::lift {

namespace arith = mlir::arith;

mlir::Value Importer::integer(mlir::Type type, uint64_t number) {
  return b_.create<arith::ConstantOp>(loc_, b_.getIntegerAttr(type, llvm::APInt(type.getIntOrFloatBitWidth(), number)));
}

mlir::Value Importer::total(ir::IntKind kind, mlir::Value a, mlir::Value b) {
  return b_.create<ir::IntOp>(loc_, a.getType(), kind, a, b);
}

arith::FastMathFlags Importer::flags(const llvm::Instruction& at) {
  auto* math = llvm::dyn_cast<llvm::FPMathOperator>(&at);
  return math && math->hasAllowContract() && !isContractionForbidden_ ? arith::FastMathFlags::contract
                                                                      : arith::FastMathFlags::none;
}

mlir::Value Importer::binary(llvm::BinaryOperator& at) {
  using Op = llvm::Instruction;
  mlir::Value a = value(at.getOperand(0)), b = value(at.getOperand(1));
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(at.getOperand(1));
  bool isSafe = known && !known->isZero() && !known->isMinusOne();
  bool isShort = known && known->getValue().ult(known->getBitWidth());
  switch (at.getOpcode()) {
  case Op::Add: return b_.create<arith::AddIOp>(loc_, a, b);
  case Op::Sub: return b_.create<arith::SubIOp>(loc_, a, b);
  case Op::Mul: return b_.create<arith::MulIOp>(loc_, a, b);
  case Op::And: return b_.create<arith::AndIOp>(loc_, a, b);
  case Op::Or:
    // Disjoint bits: the sum shows how far apart the lanes' accesses are.
    if (llvm::cast<llvm::PossiblyDisjointInst>(at).isDisjoint())
      return b_.create<arith::AddIOp>(loc_, a, b);
    return b_.create<arith::OrIOp>(loc_, a, b);
  case Op::Xor: return b_.create<arith::XOrIOp>(loc_, a, b);
  case Op::FAdd: return b_.create<arith::AddFOp>(loc_, a, b, flags(at));
  case Op::FSub: return b_.create<arith::SubFOp>(loc_, a, b, flags(at));
  case Op::FMul: return b_.create<arith::MulFOp>(loc_, a, b, flags(at));
  case Op::FDiv: return b_.create<arith::DivFOp>(loc_, a, b, flags(at));
  case Op::FRem: return b_.create<arith::RemFOp>(loc_, a, b);
  case Op::Shl:
    if (isShort)
      return b_.create<arith::MulIOp>(loc_, a, integer(a.getType(), uint64_t{1} << known->getZExtValue()));
    return total(ir::IntKind::Shl, a, b);
  case Op::LShr: return isShort ? b_.create<arith::ShRUIOp>(loc_, a, b).getResult() : total(ir::IntKind::ShrU, a, b);
  case Op::AShr: return isShort ? b_.create<arith::ShRSIOp>(loc_, a, b).getResult() : total(ir::IntKind::ShrS, a, b);
  case Op::UDiv: return isSafe ? b_.create<arith::DivUIOp>(loc_, a, b).getResult() : total(ir::IntKind::DivU, a, b);
  case Op::SDiv: return isSafe ? b_.create<arith::DivSIOp>(loc_, a, b).getResult() : total(ir::IntKind::DivS, a, b);
  case Op::URem: return isSafe ? b_.create<arith::RemUIOp>(loc_, a, b).getResult() : total(ir::IntKind::RemU, a, b);
  case Op::SRem: return isSafe ? b_.create<arith::RemSIOp>(loc_, a, b).getResult() : total(ir::IntKind::RemS, a, b);
  default: refuse(&at, std::string("`") + at.getOpcodeName() + "` cannot be lowered"); return a;
  }
}

static arith::CmpIPredicate integerPredicate(llvm::CmpInst::Predicate predicate) {
  using P = llvm::CmpInst;
  switch (predicate) {
  case P::ICMP_EQ: return arith::CmpIPredicate::eq;
  case P::ICMP_NE: return arith::CmpIPredicate::ne;
  case P::ICMP_SLT: return arith::CmpIPredicate::slt;
  case P::ICMP_SLE: return arith::CmpIPredicate::sle;
  case P::ICMP_SGT: return arith::CmpIPredicate::sgt;
  case P::ICMP_SGE: return arith::CmpIPredicate::sge;
  case P::ICMP_ULT: return arith::CmpIPredicate::ult;
  case P::ICMP_ULE: return arith::CmpIPredicate::ule;
  case P::ICMP_UGT: return arith::CmpIPredicate::ugt;
  default: return arith::CmpIPredicate::uge;
  }
}

mlir::Value Importer::compare(llvm::CmpInst& at) {
  mlir::Value a = value(at.getOperand(0)), b = value(at.getOperand(1));
  if (llvm::isa<llvm::ICmpInst>(at))
    return b_.create<arith::CmpIOp>(loc_, integerPredicate(at.getPredicate()), a, b);
  // Both number their 16 predicates by the outcomes that they accept, in another order.
  using P = llvm::CmpInst;
  using Q = arith::CmpFPredicate;
  static constexpr std::pair<P::Predicate, Q> kPairs[] = {
      {P::FCMP_FALSE, Q::AlwaysFalse}, {P::FCMP_OEQ, Q::OEQ}, {P::FCMP_OGT, Q::OGT}, {P::FCMP_OGE, Q::OGE},
      {P::FCMP_OLT, Q::OLT},           {P::FCMP_OLE, Q::OLE}, {P::FCMP_ONE, Q::ONE}, {P::FCMP_ORD, Q::ORD},
      {P::FCMP_UNO, Q::UNO},           {P::FCMP_UEQ, Q::UEQ}, {P::FCMP_UGT, Q::UGT}, {P::FCMP_UGE, Q::UGE},
      {P::FCMP_ULT, Q::ULT},           {P::FCMP_ULE, Q::ULE}, {P::FCMP_UNE, Q::UNE}, {P::FCMP_TRUE, Q::AlwaysTrue}};
  for (auto [from, to] : kPairs)
    if (from == at.getPredicate())
      return b_.create<arith::CmpFOp>(loc_, to, a, b);
  VORTEX_UNREACHABLE("predicate");
}

/// Sums and products that do not wrap are extended by their operands: the wide ones show how far apart the lanes' accesses are.
mlir::Value Importer::extended(llvm::Value* number, mlir::Type to, bool isSigned, unsigned depth) {
  constexpr unsigned kDeepest = 8;
  auto* op = llvm::dyn_cast<llvm::OverflowingBinaryOperator>(number);
  const bool isExact =
      op && to.isInteger(64) && depth < kDeepest && (isSigned ? op->hasNoSignedWrap() : op->hasNoUnsignedWrap());
  auto both = [&](auto make) {
    return make(extended(op->getOperand(0), to, isSigned, depth + 1),
                extended(op->getOperand(1), to, isSigned, depth + 1));
  };
  if (isExact && op->getOpcode() == llvm::Instruction::Add)
    return both([&](mlir::Value a, mlir::Value b) { return b_.create<arith::AddIOp>(loc_, a, b); });
  if (isExact && op->getOpcode() == llvm::Instruction::Mul)
    return both([&](mlir::Value a, mlir::Value b) { return b_.create<arith::MulIOp>(loc_, a, b); });
  auto* by = isExact && op->getOpcode() == llvm::Instruction::Shl ? llvm::dyn_cast<llvm::ConstantInt>(op->getOperand(1))
                                                                  : nullptr;
  if (by && by->getValue().ult(by->getBitWidth()))
    return b_.create<arith::MulIOp>(loc_, extended(op->getOperand(0), to, isSigned, depth + 1),
                                    integer(to, uint64_t{1} << by->getZExtValue()));
  auto* joined = llvm::dyn_cast<llvm::PossiblyDisjointInst>(number);
  if (joined && joined->isDisjoint() && !isSigned && to.isInteger(64) && depth < kDeepest)
    return b_.create<arith::AddIOp>(loc_, extended(joined->getOperand(0), to, isSigned, depth + 1),
                                    extended(joined->getOperand(1), to, isSigned, depth + 1));
  mlir::Value narrow = value(number);
  return isSigned ? b_.create<arith::ExtSIOp>(loc_, to, narrow).getResult()
                  : b_.create<arith::ExtUIOp>(loc_, to, narrow).getResult();
}

mlir::Value Importer::cast(llvm::CastInst& at) {
  using Op = llvm::Instruction;
  mlir::Value a = value(at.getOperand(0));
  mlir::Type to = type(at.getType(), &at);
  switch (at.getOpcode()) {
  case Op::Trunc: return b_.create<arith::TruncIOp>(loc_, to, a);
  case Op::ZExt: return extended(at.getOperand(0), to, false);
  case Op::SExt: return extended(at.getOperand(0), to, true);
  case Op::FPTrunc: return b_.create<arith::TruncFOp>(loc_, to, a);
  case Op::FPExt: return b_.create<arith::ExtFOp>(loc_, to, a);
  case Op::UIToFP: return b_.create<arith::UIToFPOp>(loc_, to, a);
  case Op::SIToFP: return b_.create<arith::SIToFPOp>(loc_, to, a);
  case Op::FPToUI: return b_.create<ir::FloatToIntOp>(loc_, to, a, true);
  case Op::FPToSI: return b_.create<ir::FloatToIntOp>(loc_, to, a, false);
  case Op::BitCast: return b_.create<arith::BitcastOp>(loc_, to, a);
  default: refuse(&at, std::string("`") + at.getOpcodeName() + "` cannot be lowered"); return a;
  }
}

void Importer::importInstruction(llvm::Instruction& at) {
  if (at.getType()->isVectorTy() || at.getType()->isAggregateType())
    return refuse(&at, "a vector or struct that is not taken apart cannot be lowered");
  mlir::Value result;
  if (auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(&at))
    result = binary(*operation);
  else if (auto* comparison = llvm::dyn_cast<llvm::CmpInst>(&at))
    result = compare(*comparison);
  else if (auto* conversion = llvm::dyn_cast<llvm::CastInst>(&at))
    result = cast(*conversion);
  else if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&at))
    result = b_.create<arith::SelectOp>(loc_, value(select->getCondition()), value(select->getTrueValue()),
                                        value(select->getFalseValue()));
  else if (at.getOpcode() == llvm::Instruction::FNeg)
    result = b_.create<arith::NegFOp>(loc_, value(at.getOperand(0)));
  else if (auto* frozen = llvm::dyn_cast<llvm::FreezeInst>(&at))
    result = value(frozen->getOperand(0));
  else if (auto* known = llvm::dyn_cast<llvm::IntrinsicInst>(&at))
    result = intrinsic(*known);
  else if (auto* call = llvm::dyn_cast<llvm::CallInst>(&at))
    result = hook(*call, call->getCalledFunction()->getName().drop_front(5));
  else
    refuse(&at, std::string("`") + at.getOpcodeName() + "` cannot be lowered");
  if (result)
    values_[&at] = result;
}

}  // namespace vortex::msl::lift
