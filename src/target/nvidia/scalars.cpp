#include "target/nvidia/scalars.h"

#include "base/check.h"
#include "target/interface/math/convert.h"
#include "target/interface/math/float_code.h"
#include "target/nvidia/functions.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <mlir/IR/TypeUtilities.h>

namespace vortex::target::nvidia {

using llvm::Value;

//===-- arithmetic --------------------------------------------------------------------------------------------===//

/// Even numbers of 16-bit floats travel as words of two.
static unsigned wordCount(llvm::Type* type) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector && vector->getNumElements() % 2 == 0 ? vector->getNumElements() / 2 : 0;
}

/// A bf16 is the upper half of an f32: one instruction per element, whichever half of the word it is in.
static Value* widenPairs(llvm::IRBuilder<>& ir, Value* value, unsigned words) {
  Value* packed = ir.CreateBitCast(value, llvm::FixedVectorType::get(ir.getInt32Ty(), words));
  Value* result = llvm::PoisonValue::get(llvm::FixedVectorType::get(ir.getFloatTy(), 2 * words));
  for (unsigned i = 0; i < words; ++i) {
    Value* word = ir.CreateExtractElement(packed, i);
    Value *low = ir.CreateShl(word, 16), *high = ir.CreateAnd(word, 0xFFFF0000u);
    result = ir.CreateInsertElement(result, ir.CreateBitCast(low, ir.getFloatTy()), 2 * i);
    result = ir.CreateInsertElement(result, ir.CreateBitCast(high, ir.getFloatTy()), 2 * i + 1);
  }
  return result;
}

/// Two elements per conversion.
static Value* narrowPairs(llvm::IRBuilder<>& ir, mlir::Type type, Value* value, unsigned words) {
  llvm::Intrinsic::ID convert = type.isBF16() ? llvm::Intrinsic::nvvm_ff2bf16x2_rn : llvm::Intrinsic::nvvm_ff2f16x2_rn;
  Value* packed = llvm::PoisonValue::get(llvm::FixedVectorType::get(ir.getInt32Ty(), words));
  for (unsigned i = 0; i < words; ++i) {
    Value *low = ir.CreateExtractElement(value, 2 * i), *high = ir.CreateExtractElement(value, 2 * i + 1);
    Value* pair = ir.CreateIntrinsic(convert, {}, {high, low});
    packed = ir.CreateInsertElement(packed, ir.CreateBitCast(pair, ir.getInt32Ty()), i);
  }
  return ir.CreateBitCast(packed, valueType(ir.getContext(), type, 2 * words));
}

bool NvidiaScalars::isNarrow(mlir::Type type) const { return type.isF16() || type.isBF16() || gpu::float8Format(type); }

Value* NvidiaScalars::widen(llvm::IRBuilder<>& ir, mlir::Type type, Value* value) const {
  if (auto format = gpu::float8Format(type))
    return math::emitWiden(ir, VectorFeatures{}, *format, value);
  if (!type.isF16() && !type.isBF16())
    return value;
  if (unsigned words = wordCount(value->getType()); words && type.isBF16())
    return widenPairs(ir, value, words);
  return ir.CreateFPExt(value, math::withScalar(value->getType(), ir.getFloatTy()));
}

Value* NvidiaScalars::narrow(llvm::IRBuilder<>& ir, mlir::Type type, Value* value) const {
  if (auto format = gpu::float8Format(type))
    return math::emitNarrow(ir, VectorFeatures{}, *format, value);
  if (type.isBF16() && value->getType()->getScalarType()->isDoubleTy()) {
    // No direct conversion exists; the common code rounds once.
    Value* bits = math::emitNarrow(ir, VectorFeatures{}, math::Narrow::BF16, value);
    return ir.CreateBitCast(bits, math::withScalar(value->getType(), ir.getBFloatTy()));
  }
  if (unsigned words = wordCount(value->getType()); words && value->getType()->getScalarType()->isFloatTy())
    return narrowPairs(ir, type, value, words);
  return ir.CreateFPTrunc(value, math::withScalar(value->getType(), valueType(ir.getContext(), type)));
}

/// Lane by lane: the special functions have no vector form.
static Value* forEachLane(llvm::IRBuilder<>& ir, llvm::ArrayRef<Value*> inputs,
                          llvm::function_ref<Value*(llvm::ArrayRef<Value*>)> body) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(inputs[0]->getType());
  if (!vector)
    return body(inputs);
  Value* result = llvm::PoisonValue::get(vector);
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
    llvm::SmallVector<Value*> scalars;
    for (Value* input : inputs)
      scalars.push_back(ir.CreateExtractElement(input, lane));
    Value* value = body(scalars);
    if (!value)
      return nullptr;
    result = ir.CreateInsertElement(result, value, lane);
  }
  return result;
}

Value* NvidiaScalars::unary(llvm::IRBuilder<>& ir, math::Unary function, Value* x, const math::Form& form) const {
  return forEachLane(ir, {x},
                     [&](llvm::ArrayRef<Value*> in) { return emitUnary(ir, function, in[0], form, tanhError_); });
}

Value* NvidiaScalars::divide(llvm::IRBuilder<>& ir, Value* x, Value* y, const math::Form& form) const {
  const bool isVectorOfF32 = x->getType()->isVectorTy() && x->getType()->getScalarType()->isFloatTy();
  if (isVectorOfF32 && !form.narrowBits)
    return emitQuotients(ir, x, y);
  return forEachLane(ir, {x, y}, [&](llvm::ArrayRef<Value*> in) { return emitDivision(ir, in[0], in[1], form); });
}

Value* NvidiaScalars::toInteger(llvm::IRBuilder<>& ir, Value* x, llvm::Type* type, bool isSigned) const {
  const bool hasInstruction = x->getType()->getScalarType()->isFloatTy() && type->getScalarSizeInBits() >= 8 &&
                              type->getScalarSizeInBits() <= 32;
  return hasInstruction ? emitToInteger(ir, x, type, isSigned) : ScalarModel::toInteger(ir, x, type, isSigned);
}

Value* NvidiaScalars::binary(llvm::IRBuilder<>& ir, math::Binary function, Value* x, Value* y) const {
  return forEachLane(ir, {x, y}, [&](llvm::ArrayRef<Value*> in) { return emitBinary(ir, function, in[0], in[1]); });
}

}  // namespace vortex::target::nvidia
