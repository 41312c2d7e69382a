#include "target/nvidia/scalars.h"

#include "base/check.h"
#include "target/interface/math/convert.h"
#include "target/interface/math/float_code.h"
#include "target/nvidia/functions.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <mlir/IR/BuiltinAttributes.h>
#include <mlir/IR/TypeUtilities.h>

namespace vortex::target::nvidia {

using llvm::Value;

static llvm::Type* scalarType(llvm::LLVMContext& context, mlir::Type type) {
  if (type.isIndex())
    return llvm::Type::getInt64Ty(context);
  if (type.isF16())
    return llvm::Type::getHalfTy(context);
  if (type.isBF16())
    return llvm::Type::getBFloatTy(context);
  if (type.isF32())
    return llvm::Type::getFloatTy(context);
  if (type.isF64())
    return llvm::Type::getDoubleTy(context);
  VORTEX_CHECK(type.isIntOrFloat());
  return llvm::Type::getIntNTy(context, type.getIntOrFloatBitWidth());
}

static llvm::Type* withLanes(llvm::Type* type, unsigned lanes) {
  return lanes == 1 ? type : llvm::FixedVectorType::get(type, lanes);
}

llvm::Type* valueType(llvm::LLVMContext& context, mlir::Type type, unsigned lanes) {
  return withLanes(scalarType(context, mlir::getElementTypeOrSelf(type)), lanes);
}

llvm::Type* memoryType(llvm::LLVMContext& context, mlir::Type type, unsigned lanes) {
  llvm::Type* scalar = scalarType(context, mlir::getElementTypeOrSelf(type));
  return withLanes(scalar->isIntegerTy(1) ? llvm::Type::getInt8Ty(context) : scalar, lanes);
}

unsigned lanesOf(mlir::Type type) {
  auto vector = mlir::dyn_cast<mlir::VectorType>(type);
  return vector ? vector.getNumElements() : 1;
}

static llvm::Constant* scalarConstant(llvm::LLVMContext& context, mlir::Attribute attribute) {
  if (auto boolean = mlir::dyn_cast<mlir::BoolAttr>(attribute))
    return llvm::ConstantInt::getBool(context, boolean.getValue());
  if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(attribute))
    return llvm::ConstantInt::get(valueType(context, integer.getType()), integer.getValue());
  auto real = mlir::dyn_cast<mlir::FloatAttr>(attribute);
  if (!real)
    return nullptr;
  llvm::Type* type = valueType(context, real.getType());
  if (type->isIntegerTy())
    return llvm::ConstantInt::get(type, real.getValue().bitcastToAPInt());
  return llvm::ConstantFP::get(context, real.getValue());
}

llvm::Constant* constantValue(llvm::LLVMContext& context, mlir::Attribute attribute, unsigned lanes) {
  if (auto dense = mlir::dyn_cast<mlir::SplatElementsAttr>(attribute)) {
    attribute = dense.getSplatValue<mlir::Attribute>();
  } else if (auto elements = mlir::dyn_cast<mlir::DenseElementsAttr>(attribute)) {
    llvm::SmallVector<llvm::Constant*> parts;
    for (mlir::Attribute element : elements.getValues<mlir::Attribute>())
      parts.push_back(scalarConstant(context, element));
    return lanes == 1 ? parts[0] : llvm::ConstantVector::get(parts);
  }
  llvm::Constant* scalar = scalarConstant(context, attribute);
  if (!scalar || lanes == 1)
    return scalar;
  return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(lanes), scalar);
}

static bool isBool(mlir::Type type) { return mlir::getElementTypeOrSelf(type).isInteger(1); }

Value* toMemory(llvm::IRBuilder<>& ir, mlir::Type type, Value* value) {
  return isBool(type) ? ir.CreateZExt(value, value->getType()->getWithNewBitWidth(8)) : value;
}

Value* fromMemory(llvm::IRBuilder<>& ir, mlir::Type type, Value* stored) {
  return isBool(type) ? ir.CreateICmpNE(stored, llvm::Constant::getNullValue(stored->getType())) : stored;
}

//===-- arithmetic --------------------------------------------------------------------------------------------===//

static std::optional<math::Narrow> eightBits(mlir::Type type) {
  if (type.isFloat8E4M3FN())
    return math::Narrow::F8E4M3;
  if (type.isFloat8E5M2())
    return math::Narrow::F8E5M2;
  return std::nullopt;
}

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

bool NvidiaScalars::isNarrow(mlir::Type type) const { return type.isF16() || type.isBF16() || eightBits(type); }

Value* NvidiaScalars::widen(llvm::IRBuilder<>& ir, mlir::Type type, Value* value) const {
  if (auto format = eightBits(type))
    return math::emitWiden(ir, VectorFeatures{}, *format, value);
  if (!type.isF16() && !type.isBF16())
    return value;
  if (unsigned words = wordCount(value->getType()); words && type.isBF16())
    return widenPairs(ir, value, words);
  return ir.CreateFPExt(value, math::withScalar(value->getType(), ir.getFloatTy()));
}

Value* NvidiaScalars::narrow(llvm::IRBuilder<>& ir, mlir::Type type, Value* value) const {
  if (auto format = eightBits(type))
    return math::emitNarrow(ir, VectorFeatures{}, *format, value);
  if (type.isBF16() && value->getType()->getScalarType()->isDoubleTy()) {
    // No direct conversion exists; the common code rounds once.
    Value* bits = math::emitNarrow(ir, VectorFeatures{}, math::Narrow::BF16, value);
    return ir.CreateBitCast(bits, math::withScalar(value->getType(), ir.getBFloatTy()));
  }
  if (unsigned words = wordCount(value->getType()); words && value->getType()->getScalarType()->isFloatTy())
    return narrowPairs(ir, type, value, words);
  return ir.CreateFPTrunc(value, math::withScalar(value->getType(), scalarType(ir.getContext(), type)));
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
  return forEachLane(ir, {x, y}, [&](llvm::ArrayRef<Value*> in) { return emitDivision(ir, in[0], in[1], form); });
}

Value* NvidiaScalars::binary(llvm::IRBuilder<>& ir, math::Binary function, Value* x, Value* y) const {
  return forEachLane(ir, {x, y}, [&](llvm::ArrayRef<Value*> in) { return emitBinary(ir, function, in[0], in[1]); });
}

}  // namespace vortex::target::nvidia
