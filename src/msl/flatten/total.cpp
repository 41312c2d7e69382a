#include "msl/flatten/total.h"

#include "msl/flatten/clean.h"
#include "msl/flatten/preserved.h"

#include <llvm/ADT/StringSwitch.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Support/KnownBits.h>

namespace vortex::msl::flatten {
namespace {

using llvm::BinaryOperator;
using llvm::CallInst;
using llvm::Instruction;
using llvm::Value;
namespace match = llvm::PatternMatch;

constexpr llvm::StringLiteral kHook = "__vx_total_";

Instruction::BinaryOps divisionOf(const CallInst& call) {
  llvm::StringRef name = call.getCalledFunction() ? call.getCalledFunction()->getName() : "";
  if (!name.consume_front(kHook))
    return Instruction::BinaryOpsEnd;
  return llvm::StringSwitch<Instruction::BinaryOps>(name.split('_').first)
      .Case("udiv", Instruction::UDiv)
      .Case("sdiv", Instruction::SDiv)
      .Case("urem", Instruction::URem)
      .Case("srem", Instruction::SRem)
      .Default(Instruction::BinaryOpsEnd);
}

bool isSigned(Instruction::BinaryOps op) { return op == Instruction::SDiv || op == Instruction::SRem; }

/// Has a quotient for every dividend.
bool isSafe(Value* divisor, Instruction::BinaryOps op, const llvm::DataLayout& layout) {
  if (auto* number = llvm::dyn_cast<llvm::ConstantInt>(divisor))
    return !number->isZero() && !(isSigned(op) && number->isMinusOne());
  const llvm::SimplifyQuery query(layout);
  return llvm::isKnownNonZero(divisor, query) && (!isSigned(op) || llvm::isKnownNonNegative(divisor, query));
}

Value* callHook(llvm::IRBuilder<>& b, BinaryOperator& at, Value* a, Value* by) {
  llvm::Type* type = a->getType();
  const std::string name =
      (kHook + llvm::StringRef(at.getOpcodeName()) + "_i" + llvm::Twine(type->getIntegerBitWidth())).str();
  auto callee = at.getModule()->getOrInsertFunction(name, llvm::FunctionType::get(type, {type, type}, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotAccessMemory();
  function->setDoesNotThrow();
  function->setWillReturn();
  return b.CreateCall(callee, {a, by});
}

/// Element by element: the scalarizer knows no hooks.
Value* division(BinaryOperator& at) {
  llvm::IRBuilder<> b(&at);
  const llvm::DataLayout& layout = at.getModule()->getDataLayout();
  Value *a = at.getOperand(0), *by = at.getOperand(1);
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(at.getType());
  if (!vector)
    return isSafe(by, at.getOpcode(), layout) ? nullptr : callHook(b, at, a, by);
  Value* result = llvm::PoisonValue::get(vector);
  for (unsigned k = 0; k < vector->getNumElements(); ++k)
    result =
        b.CreateInsertElement(result, callHook(b, at, b.CreateExtractElement(a, k), b.CreateExtractElement(by, k)), k);
  return result;
}

Value* shift(BinaryOperator& at) {
  llvm::IRBuilder<> b(&at);
  Value* by = at.getOperand(1);
  const unsigned width = at.getType()->getScalarSizeInBits();
  if (match::match(by, match::m_SpecificInt_ICMP(llvm::CmpInst::ICMP_ULT, llvm::APInt(width, width))))
    return nullptr;
  return b.CreateBinOp(at.getOpcode(), at.getOperand(0),
                       b.CreateAnd(by, llvm::ConstantInt::get(by->getType(), width - 1)));
}

Value* conversion(llvm::CastInst& at) {
  llvm::IRBuilder<> b(&at);
  return b.CreateIntrinsic(at.getOpcode() == Instruction::FPToSI ? llvm::Intrinsic::fptosi_sat
                                                                 : llvm::Intrinsic::fptoui_sat,
                           {at.getDestTy(), at.getSrcTy()}, {at.getOperand(0)});
}

Value* total(Instruction& at) {
  switch (at.getOpcode()) {
  case Instruction::Shl:
  case Instruction::LShr:
  case Instruction::AShr: return shift(llvm::cast<BinaryOperator>(at));
  case Instruction::UDiv:
  case Instruction::SDiv:
  case Instruction::URem:
  case Instruction::SRem: return division(llvm::cast<BinaryOperator>(at));
  case Instruction::FPToUI:
  case Instruction::FPToSI: return conversion(llvm::cast<llvm::CastInst>(at));
  default: return nullptr;
  }
}

/// The elements of vectors that are being made are poison too.
bool isPoison(const llvm::Use& use) {
  return llvm::isa<llvm::PoisonValue>(use) && (use->getType()->isIntegerTy() || use->getType()->isFloatingPointTy());
}

/// An instruction for the hook, or null.
Value* settled(CallInst& call, Instruction::BinaryOps op) {
  llvm::IRBuilder<> b(&call);
  Value *a = call.getArgOperand(0), *by = call.getArgOperand(1);
  if (isSigned(op) && match::match(by, match::m_AllOnes()))
    return op == Instruction::SRem ? llvm::Constant::getNullValue(a->getType()) : b.CreateNeg(a);
  if (isSafe(by, op, call.getModule()->getDataLayout()))
    return b.CreateBinOp(op, a, by);
  // No more than the dividend: products of it may then be known not to wrap.
  const llvm::KnownBits known = llvm::computeKnownBits(a, call.getModule()->getDataLayout());
  if (!isSigned(op) && !known.getMaxValue().isMaxValue())
    call.setMetadata(
        llvm::LLVMContext::MD_range,
        llvm::MDBuilder(call.getContext()).createRange(llvm::APInt(known.getBitWidth(), 0), known.getMaxValue() + 1));
  return nullptr;
}

}  // namespace

void makeTotal(front::Unit& unit) {
  for (llvm::Function& function : *unit.module)
    for (Instruction& each : llvm::make_early_inc_range(llvm::instructions(function))) {
      if (llvm::any_of(each.operands(), isPoison)) {
        unit.problems.push_back(problemAt(unit, &each,
                                          "this has no value: a division by zero, a shift by more than a word or "
                                          "an integer that does not fit is among what it is made of"));
        return;
      }
      if (llvm::isa<llvm::OverflowingBinaryOperator>(each))
        each.setHasNoSignedWrap(false);
      if (Value* made = total(each)) {
        made->takeName(&each);
        each.replaceAllUsesWith(made);
        each.eraseFromParent();
      }
    }
}

llvm::PreservedAnalyses SettleDivisions::run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
  bool isChanged = false;
  for (Instruction& each : llvm::make_early_inc_range(llvm::instructions(function))) {
    auto* call = llvm::dyn_cast<CallInst>(&each);
    const Instruction::BinaryOps op = call ? divisionOf(*call) : Instruction::BinaryOpsEnd;
    if (op == Instruction::BinaryOpsEnd)
      continue;
    if (Value* made = settled(*call, op)) {
      call->replaceAllUsesWith(made);
      call->eraseFromParent();
      isChanged = true;
    }
  }
  return preservedWhere(isChanged);
}

bool refuseDivisionsByZero(front::Unit& unit) {
  llvm::PostDominatorTree after(*unit.entry);
  for (Instruction& each : llvm::instructions(*unit.entry)) {
    auto* call = llvm::dyn_cast<CallInst>(&each);
    if (!call || divisionOf(*call) == Instruction::BinaryOpsEnd ||
        !match::match(call->getArgOperand(1), match::m_Zero()) ||
        !after.dominates(call->getParent(), &unit.entry->getEntryBlock()))
      continue;
    unit.problems.push_back(problemAt(unit, call, "this divides by zero"));
    return true;
  }
  return false;
}

}  // namespace vortex::msl::flatten
