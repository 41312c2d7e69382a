#include "msl/flatten/integers.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/MathExtras.h>

namespace vortex::msl::flatten {

namespace {

using llvm::Instruction;
using llvm::Value;

bool isOdd(llvm::Type* type) {
  if (!type->isIntegerTy())
    return false;
  unsigned bits = type->getIntegerBitWidth();
  return bits != 1 && bits <= 64 && (bits < 8 || !llvm::isPowerOf2_32(bits));
}

class Widener {
public:
  explicit Widener(llvm::Function& function) : function_(function), b_(function.getContext()) {}

  void run() {
    llvm::SmallVector<Instruction*> all;
    for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&function_))
      for (Instruction& each : *block)
        if (isOdd(each.getType()) || llvm::any_of(each.operands(), [](Value* of) { return isOdd(of->getType()); }))
          all.push_back(&each);
    if (!llvm::all_of(all, isKnown))
      return;
    for (Instruction* each : all)
      widen(*each);
    for (llvm::PHINode* phi : phis_)
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
        llvm::cast<llvm::PHINode>(wide_[phi])->addIncoming(wide(phi->getIncomingValue(i)), phi->getIncomingBlock(i));
    for (Instruction* each : llvm::reverse(all))
      each->replaceAllUsesWith(llvm::PoisonValue::get(each->getType()));
    for (Instruction* each : llvm::reverse(all))
      each->eraseFromParent();
  }

private:
  static bool isKnown(Instruction* at) {
    if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(at))
      return isKnownCall(call->getIntrinsicID());
    return llvm::isa<llvm::PHINode, llvm::SelectInst, llvm::BinaryOperator, llvm::ICmpInst, llvm::TruncInst,
                     llvm::ZExtInst, llvm::SExtInst, llvm::UIToFPInst, llvm::SIToFPInst, llvm::FreezeInst>(at);
  }
  static bool isKnownCall(llvm::Intrinsic::ID id) {
    namespace in = llvm::Intrinsic;
    return id == in::bitreverse || id == in::ctpop || id == in::umin || id == in::umax || id == in::smin ||
           id == in::smax;
  }
  llvm::IntegerType* widened(llvm::Type* type) {
    return b_.getIntNTy(std::max(8u, static_cast<unsigned>(llvm::PowerOf2Ceil(type->getIntegerBitWidth()))));
  }
  /// The value with zeros above its bits; other types as they are.
  Value* wide(Value* value) {
    if (!isOdd(value->getType()))
      return value;
    if (auto* number = llvm::dyn_cast<llvm::ConstantInt>(value))
      return llvm::ConstantInt::get(widened(value->getType()), number->getZExtValue());
    Value* found = wide_.lookup(value);
    return found ? found : llvm::Constant::getNullValue(widened(value->getType()));  // undef, poison
  }
  /// With copies of the sign above.
  Value* extended(Value* value) {
    if (!isOdd(value->getType()))
      return value;
    Value* zeros = wide(value);
    unsigned shift = zeros->getType()->getIntegerBitWidth() - value->getType()->getIntegerBitWidth();
    return b_.CreateAShr(b_.CreateShl(zeros, shift), shift);
  }
  Value* masked(Value* value, llvm::Type* type) {
    unsigned bits = type->getIntegerBitWidth();
    return b_.CreateAnd(value, llvm::ConstantInt::get(value->getType(), (uint64_t{1} << bits) - 1));
  }

  Value* binary(llvm::BinaryOperator& op) {
    bool isSigned = op.getOpcode() == Instruction::SDiv || op.getOpcode() == Instruction::SRem ||
                    op.getOpcode() == Instruction::AShr;
    bool shifts = op.getOpcode() == Instruction::AShr;
    Value* x = isSigned ? extended(op.getOperand(0)) : wide(op.getOperand(0));
    Value* y = isSigned && !shifts ? extended(op.getOperand(1)) : wide(op.getOperand(1));
    return masked(b_.CreateBinOp(op.getOpcode(), x, y), op.getType());
  }

  Value* intrinsic(llvm::IntrinsicInst& call) {
    llvm::Intrinsic::ID id = call.getIntrinsicID();
    if (id == llvm::Intrinsic::bitreverse || id == llvm::Intrinsic::ctpop) {
      Value* result = b_.CreateUnaryIntrinsic(id, wide(call.getOperand(0)));
      unsigned above = result->getType()->getIntegerBitWidth() - call.getType()->getIntegerBitWidth();
      return id == llvm::Intrinsic::ctpop ? result : b_.CreateLShr(result, above);
    }
    bool isSigned = id == llvm::Intrinsic::smin || id == llvm::Intrinsic::smax;
    auto operand = [&](unsigned i) { return isSigned ? extended(call.getOperand(i)) : wide(call.getOperand(i)); };
    return masked(b_.CreateBinaryIntrinsic(id, operand(0), operand(1)), call.getType());
  }

  void widen(Instruction& at) {
    b_.SetInsertPoint(&at);
    if (llvm::isa<llvm::PHINode>(at)) {
      auto* phi = llvm::cast<llvm::PHINode>(&at);
      wide_[phi] = b_.CreatePHI(widened(phi->getType()), phi->getNumIncomingValues());
      phis_.push_back(phi);
      return;
    }
    Value* result = nullptr;
    Value *first = at.getOperand(0), *source = wide(first);
    llvm::Type* type = at.getType();
    if (auto* op = llvm::dyn_cast<llvm::BinaryOperator>(&at))
      result = binary(*op);
    else if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&at))
      result = intrinsic(*call);
    else if (auto* compare = llvm::dyn_cast<llvm::ICmpInst>(&at))
      result = compare->isSigned() ? b_.CreateICmp(compare->getPredicate(), extended(first), extended(at.getOperand(1)))
                                   : b_.CreateICmp(compare->getPredicate(), source, wide(at.getOperand(1)));
    else if (llvm::isa<llvm::SelectInst>(at))
      result = b_.CreateSelect(first, wide(at.getOperand(1)), wide(at.getOperand(2)));
    else if (llvm::isa<llvm::FreezeInst>(at))
      result = source;
    else if (llvm::isa<llvm::UIToFPInst>(at))
      result = b_.CreateUIToFP(source, type);
    else if (llvm::isa<llvm::SIToFPInst>(at))
      result = b_.CreateSIToFP(extended(first), type);
    else if (!isOdd(type))  // extensions and truncations to a width that vx has
      result = llvm::isa<llvm::SExtInst>(at) ? b_.CreateSExtOrTrunc(extended(first), type)
                                             : b_.CreateZExtOrTrunc(source, type);
    else
      result = masked(llvm::isa<llvm::SExtInst>(at) ? b_.CreateSExtOrTrunc(extended(first), widened(type))
                                                    : b_.CreateZExtOrTrunc(source, widened(type)),
                      type);
    if (isOdd(type))
      wide_[&at] = result;
    else
      at.replaceAllUsesWith(result);
  }

  llvm::Function& function_;
  llvm::IRBuilder<> b_;
  llvm::DenseMap<Value*, Value*> wide_;
  llvm::SmallVector<llvm::PHINode*> phis_;
};

}  // namespace

void widenIntegers(llvm::Function& function) { Widener(function).run(); }

}  // namespace vortex::msl::flatten
