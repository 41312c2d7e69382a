// Atomics of thread regions: lane after lane, except where one operation does for the whole warp. Shared and local memory belongs to one worker, so
// plain accesses do there.
#include "target/cpu/emit/atomics.h"
#include "target/cpu/emit/region_emitter.h"

namespace vortex::target::cpu::emit {

using llvm::Value;

Value* RegionEmitter::perActiveLane(const Access& access, llvm::Type* resultType,
                                    llvm::function_ref<Value*(Value* pointer, Value* lane)> body) {
  unsigned width = shape_.width;
  if (width == 1) {
    Value* pointer = elementPointer(ir_, access.type, access.pointer, access.offset.value);
    Value* condition = uniformCondition(access);
    if (!condition)
      return body(pointer, nullptr);
    if (!resultType) {
      emit::emitIf(ir_, condition, [&] { body(pointer, nullptr); });
      return nullptr;
    }
    return emit::emitIf(
        ir_, condition, [&] { return Values{body(pointer, nullptr)}; },
        [&] { return Values{llvm::Constant::getNullValue(resultType)}; })[0];
  }
  Value* mask = activeLanes(access);
  if (!mask && !resultType) {
    for (unsigned lane = 0; lane < width; ++lane)
      body(access.offset.isUniform() ? elementPointer(ir_, access.type, access.pointer, access.offset.value)
                                     : lanePointer(access, lane),
           ir_.getInt64(lane));
    return nullptr;
  }
  Value* offsets = math_.vector(access.offset);
  llvm::AllocaInst* offsetSlot = entryAlloca(ir_, offsets->getType());
  ir_.CreateStore(offsets, offsetSlot);
  llvm::Type* vectorType = resultType ? llvm::FixedVectorType::get(resultType, width) : nullptr;
  llvm::AllocaInst* resultSlot = resultType ? entryAlloca(ir_, vectorType) : nullptr;
  if (resultSlot)
    ir_.CreateStore(llvm::Constant::getNullValue(vectorType), resultSlot);
  emitForActiveLanes(ir_, mask ? mask : fullMask(), [&](Value* lane) {
    Value* offset = ir_.CreateLoad(ir_.getInt64Ty(), ir_.CreateGEP(ir_.getInt64Ty(), offsetSlot, lane));
    Value* result = body(elementPointer(ir_, access.type, access.pointer, offset), lane);
    if (resultSlot)
      ir_.CreateStore(result, ir_.CreateGEP(resultType, resultSlot, lane));
  });
  return resultSlot ? ir_.CreateLoad(vectorType, resultSlot) : nullptr;
}

/// A lane's element of a vector, by number.
static Value* element(llvm::IRBuilder<>& ir, Value* vector, Value* lane) {
  return lane && vector->getType()->isVectorTy() ? ir.CreateExtractElement(vector, lane) : vector;
}

/// All lanes hit one address and nobody wants the old values: combine the warp first. Float sums too: atomics promise no order.
bool RegionEmitter::reduceThenAtomic(ir::AtomicRmwOp op, const Access& access) {
  if (!op.getResult().use_empty() || !access.offset.isUniform() || op.getKind() == ir::Combine::Exchange ||
      shape_.width == 1)
    return false;
  if (op.getKind() == ir::Combine::MaxF || op.getKind() == ir::Combine::MinF)
    return false;  // NaN rules of the warp's combination differ
  Value* mask = activeLanes(access);
  Value* sum = reduceLanes(op.getKind(), access.type, vector(op.getValue()), mask);
  Value* pointer = elementPointer(ir_, access.type, access.pointer, access.offset.value);
  auto once = [&] {
    emit::emitAtomicRmw(ir_, op.getKind(), access.type, pointer, sum, op.getOrder(), access.blockPrivate);
  };
  if (mask)
    emit::emitIf(ir_, anyLane(ir_, mask), once);
  else
    once();
  return true;
}

void RegionEmitter::emitAtomicRmw(ir::AtomicRmwOp op) {
  Access target = access(op.getView(), op.getIndices(), op.getMask(), op.getGuarded());
  if (!supportsAtomics(target.type))
    return e_.fail(op, "an atomic on elements that are not 32 or 64 bits wide");
  if (reduceThenAtomic(op, target))
    return;
  Value* values = vector(op.getValue());
  bool used = !op.getResult().use_empty();
  llvm::Type* type = values->getType()->getScalarType();
  Value* old = perActiveLane(target, used ? type : nullptr, [&](Value* pointer, Value* lane) {
    return emit::emitAtomicRmw(ir_, op.getKind(), target.type, pointer, element(ir_, values, lane), op.getOrder(),
                               target.blockPrivate);
  });
  if (used)
    set(op.getResult(), math_.fromVector(old));
}

void RegionEmitter::emitAtomicCas(ir::AtomicCasOp op) {
  Access target = access(op.getView(), op.getIndices(), op.getMask(), op.getGuarded());
  if (!supportsAtomics(target.type))
    return e_.fail(op, "an atomic on elements that are not 32 or 64 bits wide");
  Value *expected = vector(op.getExpected()), *desired = vector(op.getDesired());
  Value* old = perActiveLane(target, expected->getType()->getScalarType(), [&](Value* pointer, Value* lane) {
    return emit::emitAtomicCas(ir_, target.type, pointer, element(ir_, expected, lane), element(ir_, desired, lane),
                               op.getOrder(), target.blockPrivate);
  });
  set(op.getResult(), math_.fromVector(old));
}

void RegionEmitter::emitAtomicLoad(ir::AtomicLoadOp op) {
  Access source = access(op.getView(), op.getIndices(), op.getMask(), op.getGuarded());
  if (!supportsAtomics(source.type))
    return e_.fail(op, "an atomic on elements that are not 32 or 64 bits wide");
  if (isUniform(source)) {
    Value* pointer = elementPointer(ir_, source.type, source.pointer, source.offset.value);
    if (Value* condition = uniformCondition(source))
      pointer = e_.pointerOrZeros(condition, pointer);
    return set(op.getResult(),
               Lane::uniform(emit::emitAtomicLoad(ir_, source.type, pointer, op.getOrder(), source.blockPrivate)));
  }
  llvm::Type* type = valueType(e_.context(), source.type);
  Value* loaded = perActiveLane(source, type, [&](Value* pointer, Value*) {
    return emit::emitAtomicLoad(ir_, source.type, pointer, op.getOrder(), source.blockPrivate);
  });
  set(op.getResult(), math_.fromVector(loaded));
}

void RegionEmitter::emitAtomicStore(ir::AtomicStoreOp op) {
  Access target = access(op.getView(), op.getIndices(), op.getMask(), op.getGuarded());
  if (!supportsAtomics(target.type))
    return e_.fail(op, "an atomic on elements that are not 32 or 64 bits wide");
  Value* values = vector(op.getValue());
  perActiveLane(target, nullptr, [&](Value* pointer, Value* lane) -> Value* {
    emit::emitAtomicStore(ir_, target.type, element(ir_, values, lane), pointer, op.getOrder(), target.blockPrivate);
    return nullptr;
  });
}

}  // namespace vortex::target::cpu::emit
