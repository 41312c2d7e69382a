#include "target/nvidia/narrow_lanes.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

namespace vortex::target::nvidia {

using llvm::Value;

namespace {

bool isNarrow(llvm::Type* type) {
  const unsigned bits = type->getScalarSizeInBits();
  return llvm::isa<llvm::FixedVectorType>(type) && type->isIntOrIntVectorTy() && bits > 1 && bits <= 16;
}

bool isSplit(llvm::Instruction& each) {
  if (each.getNumOperands() == 0)
    return false;
  llvm::Type *type = each.getType(), *from = each.getOperand(0)->getType();
  if (llvm::isa<llvm::ICmpInst>(each))
    return isNarrow(from);
  if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&each))
    return isNarrow(type) && !binary->isBitwiseLogicOp();
  if (llvm::isa<llvm::SelectInst>(each))
    return isNarrow(type);
  if (llvm::isa<llvm::SExtInst, llvm::ZExtInst>(each))
    return isNarrow(type) && from->getScalarSizeInBits() == 1;
  if (llvm::isa<llvm::TruncInst>(each))
    return isNarrow(from) && type->getScalarSizeInBits() == 1;
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&each);
  return call && isNarrow(type) && llvm::isTriviallyVectorizable(call->getIntrinsicID());
}

Value* oneLane(llvm::IRBuilder<>& ir, llvm::Instruction& whole, unsigned lane) {
  llvm::Instruction* one = whole.clone();
  for (llvm::Use& operand : one->operands())
    if (llvm::isa<llvm::FixedVectorType>(operand->getType()))
      operand.set(ir.CreateExtractElement(operand.get(), lane));
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&whole);
  if (!call) {
    one->mutateType(whole.getType()->getScalarType());
    return ir.Insert(one);
  }
  llvm::SmallVector<Value*> arguments(llvm::cast<llvm::CallInst>(one)->args());
  one->deleteValue();
  return ir.CreateIntrinsic(whole.getType()->getScalarType(), call->getIntrinsicID(), arguments);
}

/// Operand of a conversion to floats that reads the sign of a narrow integer as a number.
bool readsSign(llvm::Instruction& each) {
  auto* convert = llvm::dyn_cast<llvm::UIToFPInst>(&each);
  auto* extended = convert ? llvm::dyn_cast<llvm::SExtInst>(convert->getOperand(0)) : nullptr;
  return extended && extended->getSrcTy()->getScalarSizeInBits() <= 16 &&
         extended->getDestTy()->getScalarSizeInBits() == 32;
}

}  // namespace

llvm::PreservedAnalyses SplitNarrowLanes::run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
  llvm::SmallVector<llvm::Instruction*> split, signs;
  for (llvm::Instruction& each : llvm::instructions(function))
    if (isSplit(each))
      split.push_back(&each);
    else if (readsSign(each))
      signs.push_back(&each);
  for (llvm::Instruction* whole : split) {
    llvm::IRBuilder<> ir(whole);
    Value* all = llvm::PoisonValue::get(whole->getType());
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(whole->getType())->getNumElements();
    for (unsigned lane = 0; lane < lanes; ++lane)
      all = ir.CreateInsertElement(all, oneLane(ir, *whole, lane), lane);
    whole->replaceAllUsesWith(all);
    whole->eraseFromParent();
  }
  for (llvm::Instruction* convert : signs) {
    llvm::IRBuilder<> ir(convert);
    Value* x = convert->getOperand(0);
    convert->setOperand(0, ir.CreateZExt(x, x->getType()->getWithNewBitWidth(64)));
  }
  return split.empty() && signs.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
}

}  // namespace vortex::target::nvidia
