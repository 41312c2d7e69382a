#include "target/gpu/llvm_values.h"

#include "base/check.h"

#include <mlir/IR/BuiltinAttributes.h>
#include <mlir/IR/TypeUtilities.h>

namespace vortex::target::gpu {

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

std::optional<math::Narrow> float8Format(mlir::Type type) {
  if (type.isFloat8E4M3FN())
    return math::Narrow::F8E4M3;
  if (type.isFloat8E5M2())
    return math::Narrow::F8E5M2;
  return std::nullopt;
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

llvm::Value* toMemory(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value) {
  return isBool(type) ? ir.CreateZExt(value, value->getType()->getWithNewBitWidth(8)) : value;
}

llvm::Value* fromMemory(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* stored) {
  return isBool(type) ? ir.CreateICmpNE(stored, llvm::Constant::getNullValue(stored->getType())) : stored;
}

}  // namespace vortex::target::gpu
