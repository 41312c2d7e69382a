// f32 to integers. The instruction rounds toward zero, holds what is outside at the ends of the range and makes NaN 0: what the language says. Four
// bytes at a time, two instructions convert, saturate and pack them.
#include "target/nvidia/functions.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/PatternMatch.h>

namespace vortex::target::nvidia {

using llvm::Value;

/// One instruction without effects.
static Value* pureInstruction(llvm::IRBuilder<>& ir, const std::string& text, const char* constraints,
                              llvm::ArrayRef<Value*> inputs) {
  llvm::SmallVector<llvm::Type*> types;
  for (Value* input : inputs)
    types.push_back(input->getType());
  auto* function = llvm::FunctionType::get(ir.getInt32Ty(), types, false);
  return ir.CreateCall(llvm::InlineAsm::get(function, text, constraints, false), inputs);
}

/// The lane of `x`; of a number that was rounded toward zero before, the number.
static Value* laneBeforeTrunc(llvm::IRBuilder<>& ir, Value* x, unsigned lane) {
  namespace pattern = llvm::PatternMatch;
  Value* known = x->getType()->isVectorTy() ? llvm::findScalarElement(x, lane) : x;
  Value *value = known ? known : ir.CreateExtractElement(x, lane), *before = nullptr;
  return pattern::match(value, pattern::m_Intrinsic<llvm::Intrinsic::trunc>(pattern::m_Value(before))) ? before : value;
}

/// Sign- or zero-extended.
static Value* convertToward0(llvm::IRBuilder<>& ir, Value* x, unsigned bits, bool isSigned) {
  std::string type = (isSigned ? "s" : "u") + std::to_string(bits);
  return pureInstruction(ir, "cvt.rzi." + type + ".f32 $0, $1;", "=r,f", {x});
}

Value* emitToInteger(llvm::IRBuilder<>& ir, Value* x, llvm::Type* type, bool isSigned) {
  const unsigned bits = type->getScalarSizeInBits();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (!vector)
    return ir.CreateTrunc(convertToward0(ir, laneBeforeTrunc(ir, x, 0), bits, isSigned), type);
  const unsigned lanes = vector->getNumElements();
  if (bits != 8 || lanes % 4 != 0) {
    Value* result = llvm::PoisonValue::get(type);
    for (unsigned lane = 0; lane < lanes; ++lane) {
      Value* one = convertToward0(ir, laneBeforeTrunc(ir, x, lane), bits, isSigned);
      result = ir.CreateInsertElement(result, ir.CreateTrunc(one, vector->getElementType()), lane);
    }
    return result;
  }
  const std::string pack = std::string("cvt.pack.sat.") + (isSigned ? "s8" : "u8") + ".s32.b32 $0, $1, $2, $3;";
  Value* words = llvm::PoisonValue::get(llvm::FixedVectorType::get(ir.getInt32Ty(), lanes / 4));
  for (unsigned word = 0; word < lanes / 4; ++word) {
    Value* packed = ir.getInt32(0);
    for (unsigned upper : {3U, 1U}) {
      Value* high = convertToward0(ir, laneBeforeTrunc(ir, x, 4 * word + upper), 32, true);
      Value* low = convertToward0(ir, laneBeforeTrunc(ir, x, 4 * word + upper - 1), 32, true);
      packed = pureInstruction(ir, pack, "=r,r,r,r", {high, low, packed});
    }
    words = ir.CreateInsertElement(words, packed, word);
  }
  return ir.CreateBitCast(words, type);
}

}  // namespace vortex::target::nvidia
