#include "target/cpu/emit/types.h"

#include "base/check.h"
#include "target/cpu/emit/loops.h"

#include <mlir/IR/BuiltinAttributes.h>
#include <mlir/IR/TypeUtilities.h>

namespace vortex::target::cpu::emit {

std::optional<math::Narrow> narrowFormat(mlir::Type type) {
  type = mlir::getElementTypeOrSelf(type);
  if (type.isF16())
    return math::Narrow::F16;
  if (type.isBF16())
    return math::Narrow::BF16;
  if (type.isFloat8E4M3FN())
    return math::Narrow::F8E4M3;
  if (type.isFloat8E5M2())
    return math::Narrow::F8E5M2;
  return std::nullopt;
}

static llvm::Type* scalarType(llvm::LLVMContext& context, mlir::Type type) {
  if (mlir::isa<mlir::IndexType>(type))
    return llvm::Type::getInt64Ty(context);
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

uint64_t elementBytes(mlir::Type type) {
  type = mlir::getElementTypeOrSelf(type);
  return mlir::isa<mlir::IndexType>(type) ? 8 : (type.getIntOrFloatBitWidth() + 7) / 8;
}

llvm::Value* toMemory(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value) {
  if (!mlir::getElementTypeOrSelf(type).isInteger(1))
    return value;
  return ir.CreateZExt(value, value->getType()->getWithNewBitWidth(8));
}

llvm::Value* fromMemory(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* stored) {
  if (!mlir::getElementTypeOrSelf(type).isInteger(1))
    return stored;
  return ir.CreateICmpNE(stored, llvm::Constant::getNullValue(stored->getType()));
}

llvm::Constant* constantValue(llvm::LLVMContext& context, mlir::Attribute attribute, unsigned lanes) {
  if (auto dense = mlir::dyn_cast<mlir::SplatElementsAttr>(attribute))
    attribute = dense.getSplatValue<mlir::Attribute>();
  llvm::Constant* scalar = nullptr;
  if (auto boolean = mlir::dyn_cast<mlir::BoolAttr>(attribute))
    scalar = llvm::ConstantInt::getBool(context, boolean.getValue());
  else if (auto integer = mlir::dyn_cast<mlir::IntegerAttr>(attribute))
    scalar = llvm::ConstantInt::get(valueType(context, integer.getType()), integer.getValue());
  else if (auto real = mlir::dyn_cast<mlir::FloatAttr>(attribute)) {
    if (narrowFormat(real.getType()))
      scalar = llvm::ConstantInt::get(valueType(context, real.getType()), real.getValue().bitcastToAPInt());
    else
      scalar = llvm::ConstantFP::get(context, real.getValue());
  }
  if (!scalar || lanes == 1)
    return scalar;
  return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(lanes), scalar);
}

llvm::Value* splat(llvm::IRBuilder<>& ir, llvm::Value* value, unsigned lanes) {
  if (lanes == 1 || value->getType()->isVectorTy())
    return value;
  return ir.CreateVectorSplat(lanes, value);
}

llvm::Value* elementPointer(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* pointer, llvm::Value* index) {
  return ir.CreateGEP(memoryType(ir.getContext(), type), pointer, index);
}

llvm::Value* maskBits(llvm::IRBuilder<>& ir, llvm::Value* mask) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(mask->getType());
  return vector ? ir.CreateBitCast(mask, ir.getIntNTy(vector->getNumElements())) : mask;
}

llvm::Value* anyLane(llvm::IRBuilder<>& ir, llvm::Value* mask) {
  if (!mask->getType()->isVectorTy())
    return mask;
  llvm::Value* bits = maskBits(ir, mask);
  return ir.CreateICmpNE(bits, llvm::Constant::getNullValue(bits->getType()));
}

llvm::Value* allLanes(llvm::IRBuilder<>& ir, llvm::Value* mask) {
  if (!mask->getType()->isVectorTy())
    return mask;
  llvm::Value* bits = maskBits(ir, mask);
  return ir.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType()));
}

void emitForActiveLanes(llvm::IRBuilder<>& ir, llvm::Value* mask, llvm::function_ref<void(llvm::Value* lane)> body) {
  llvm::Value* bits = maskBits(ir, mask);
  if (bits->getType()->getIntegerBitWidth() < 64)
    bits = ir.CreateZExt(bits, ir.getInt64Ty());
  llvm::Type* set = bits->getType();  // wider where there are more lanes than 64
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = ir.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(ir.getContext(), "lane", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "lanes.done", function);
  llvm::Constant* none = llvm::Constant::getNullValue(set);
  ir.CreateCondBr(ir.CreateICmpNE(bits, none), head, after);
  ir.SetInsertPoint(head);
  llvm::PHINode* left = ir.CreatePHI(set, 2);
  left->addIncoming(bits, before);
  body(ir.CreateTrunc(ir.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, ir.getTrue()), ir.getInt64Ty()));
  llvm::Value* rest = ir.CreateAnd(left, ir.CreateSub(left, llvm::ConstantInt::get(set, 1)));
  left->addIncoming(rest, ir.GetInsertBlock());
  ir.CreateCondBr(ir.CreateICmpNE(rest, none), head, after);
  ir.SetInsertPoint(after);
}

static bool hasMaskedAccess(const VectorFeatures& features, uint64_t bytes) {
  return features.avx512 || (features.avx2 && bytes >= 4);
}

llvm::Value* emitLoad(llvm::IRBuilder<>& ir, const VectorFeatures& features, mlir::Type type, llvm::Value* pointer,
                      unsigned lanes, llvm::Value* mask) {
  uint64_t bytes = elementBytes(type);
  llvm::Type* memory = memoryType(ir.getContext(), type, lanes);
  llvm::Align align(bytes);
  if (!mask)
    return fromMemory(ir, type, ir.CreateAlignedLoad(memory, pointer, align));
  llvm::Constant* zeros = llvm::Constant::getNullValue(memory);
  if (lanes == 1) {
    Values loaded = emitIf(
        ir, mask, [&] { return Values{ir.CreateAlignedLoad(memory, pointer, align)}; }, [&] { return Values{zeros}; });
    return fromMemory(ir, type, loaded[0]);
  }
  if (hasMaskedAccess(features, bytes))
    return fromMemory(ir, type, ir.CreateMaskedLoad(memory, pointer, align, mask, zeros));
  // Without hardware masks LLVM would emit a branch per lane: most masks are full, the rest loops over its lanes.
  Values loaded = emitIf(
      ir, allLanes(ir, mask), [&] { return Values{ir.CreateAlignedLoad(memory, pointer, align)}; },
      [&] {
        llvm::AllocaInst* slot = entryAlloca(ir, memory);
        ir.CreateStore(zeros, slot);
        emitForActiveLanes(ir, mask, [&](llvm::Value* lane) {
          llvm::Type* element = memoryType(ir.getContext(), type);
          ir.CreateStore(ir.CreateAlignedLoad(element, ir.CreateGEP(element, pointer, lane), align),
                         ir.CreateGEP(element, slot, lane));
        });
        return Values{ir.CreateLoad(memory, slot)};
      });
  return fromMemory(ir, type, loaded[0]);
}

void emitStreamingStore(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value, llvm::Value* pointer,
                        uint64_t alignment) {
  llvm::StoreInst* store = ir.CreateAlignedStore(toMemory(ir, type, value), pointer, llvm::Align(alignment));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                     llvm::MDNode::get(ir.getContext(), llvm::ConstantAsMetadata::get(ir.getInt32(1))));
}

void emitPrefetch(llvm::IRBuilder<>& ir, llvm::Value* pointer, uint64_t bytes) {
  for (uint64_t offset = 0; offset < bytes; offset += 64)  // to read, into the second-level cache, data
    ir.CreateIntrinsic(
        llvm::Intrinsic::prefetch, {pointer->getType()},
        {ir.CreateConstGEP1_64(ir.getInt8Ty(), pointer, offset), ir.getInt32(0), ir.getInt32(2), ir.getInt32(1)});
}

void emitStore(llvm::IRBuilder<>& ir, const VectorFeatures& features, mlir::Type type, llvm::Value* value,
               llvm::Value* pointer, unsigned lanes, llvm::Value* mask) {
  uint64_t bytes = elementBytes(type);
  llvm::Align align(bytes);
  llvm::Value* stored = toMemory(ir, type, value);
  if (!mask) {
    ir.CreateAlignedStore(stored, pointer, align);
    return;
  }
  if (lanes == 1)
    return emitIf(ir, mask, [&] { ir.CreateAlignedStore(stored, pointer, align); });
  if (features.avx512) {
    ir.CreateMaskedStore(stored, pointer, align, mask);
    return;
  }
  // AVX2 has masked stores of 4 and 8 bytes, but they are microcoded on several machines: full masks avoid them.
  emitIf(
      ir, allLanes(ir, mask),
      [&] {
        ir.CreateAlignedStore(stored, pointer, align);
        return Values{};
      },
      [&] {
        if (hasMaskedAccess(features, bytes)) {
          ir.CreateMaskedStore(stored, pointer, align, mask);
          return Values{};
        }
        llvm::AllocaInst* slot = entryAlloca(ir, stored->getType());
        ir.CreateStore(stored, slot);
        emitForActiveLanes(ir, mask, [&](llvm::Value* lane) {
          llvm::Type* element = memoryType(ir.getContext(), type);
          ir.CreateAlignedStore(ir.CreateLoad(element, ir.CreateGEP(element, slot, lane)),
                                ir.CreateGEP(element, pointer, lane), align);
        });
        return Values{};
      });
}

}  // namespace vortex::target::cpu::emit
