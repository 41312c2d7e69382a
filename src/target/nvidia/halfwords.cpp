#include "target/nvidia/halfwords.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

namespace vortex::target::nvidia {

using llvm::Value;

namespace {

bool isNarrow(llvm::Type* type) { return type->isIntOrIntVectorTy() && type->getScalarSizeInBits() <= 16; }

class Widening {
public:
  explicit Widening(llvm::Instruction& narrow)
      : ir_(&narrow), narrow_(narrow.getType()), wide_(narrow_->getWithNewBitWidth(32)) {}

  Value* negated(Value* x) {
    // LLVM would make a narrow subtraction of a wide one that is truncated.
    auto* type = llvm::FunctionType::get(ir_.getInt32Ty(), {ir_.getInt32Ty()}, false);
    auto* negate = llvm::InlineAsm::get(type, "neg.s32 $0, $1;", "=r,r", false);
    Value* extended = ir_.CreateSExt(x, wide_);
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(wide_);
    if (!vector)
      return ir_.CreateTrunc(ir_.CreateCall(negate, {extended}), narrow_);
    Value* result = llvm::PoisonValue::get(wide_);
    for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
      Value* one = ir_.CreateCall(negate, {ir_.CreateExtractElement(extended, lane)});
      result = ir_.CreateInsertElement(result, one, lane);
    }
    return ir_.CreateTrunc(result, narrow_);
  }

  /// Null: the instruction is as good on halfwords.
  Value* call(llvm::IntrinsicInst& call) {
    switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::abs: {
      Value* result =
          ir_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, ir_.CreateSExt(call.getArgOperand(0), wide_), ir_.getFalse());
      return ir_.CreateTrunc(result, narrow_);
    }
    case llvm::Intrinsic::smin:
    case llvm::Intrinsic::smax: return binary(call, true);
    case llvm::Intrinsic::umin:
    case llvm::Intrinsic::umax:
    case llvm::Intrinsic::usub_sat: return binary(call, false);
    case llvm::Intrinsic::uadd_sat: {
      Value* sum =
          ir_.CreateAdd(ir_.CreateZExt(call.getArgOperand(0), wide_), ir_.CreateZExt(call.getArgOperand(1), wide_));
      Value* most = llvm::ConstantInt::get(wide_, llvm::APInt::getLowBitsSet(32, narrow_->getScalarSizeInBits()));
      return ir_.CreateTrunc(ir_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, sum, most), narrow_);
    }
    default: return nullptr;
    }
  }

private:
  Value* binary(llvm::IntrinsicInst& call, bool isSigned) {
    auto wide = [&](unsigned number) {
      Value* x = call.getArgOperand(number);
      return isSigned ? ir_.CreateSExt(x, wide_) : ir_.CreateZExt(x, wide_);
    };
    return ir_.CreateTrunc(ir_.CreateBinaryIntrinsic(call.getIntrinsicID(), wide(0), wide(1)), narrow_);
  }

  llvm::IRBuilder<> ir_;
  llvm::Type *narrow_, *wide_;
};

}  // namespace

llvm::PreservedAnalyses WidenHalfwords::run(llvm::Function& function, llvm::FunctionAnalysisManager&) {
  namespace pattern = llvm::PatternMatch;
  llvm::SmallVector<std::pair<llvm::Instruction*, Value*>> replaced;
  for (llvm::Instruction& each : llvm::instructions(function)) {
    if (!isNarrow(each.getType()))
      continue;
    Value *x = nullptr, *result = nullptr;
    if (pattern::match(&each, pattern::m_Neg(pattern::m_Value(x))))
      result = Widening(each).negated(x);
    else if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&each))
      result = Widening(each).call(*call);
    if (result)
      replaced.push_back({&each, result});
  }
  for (auto [narrow, wide] : replaced) {
    narrow->replaceAllUsesWith(wide);
    narrow->eraseFromParent();
  }
  return replaced.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
}

}  // namespace vortex::target::nvidia
