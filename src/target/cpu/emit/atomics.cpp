#include "target/cpu/emit/atomics.h"

#include "target/cpu/emit/types.h"

namespace vortex::target::cpu::emit {

using ir::Combine;
using llvm::AtomicOrdering;
using llvm::Value;

bool supportsAtomics(mlir::Type type) {
  uint64_t bytes = elementBytes(type);
  return !narrowFormat(type) && (bytes == 4 || bytes == 8);
}

AtomicOrdering orderingOf(ir::Order order) {
  switch (order) {
  case ir::Order::Relaxed: return AtomicOrdering::Monotonic;
  case ir::Order::Acquire: return AtomicOrdering::Acquire;
  case ir::Order::Release: return AtomicOrdering::Release;
  case ir::Order::AcqRel: return AtomicOrdering::AcquireRelease;
  case ir::Order::SeqCst: return AtomicOrdering::SequentiallyConsistent;
  }
  return AtomicOrdering::SequentiallyConsistent;
}

Value* emitCombine(llvm::IRBuilder<>& ir, Combine kind, Value* a, Value* b, bool atomic) {
  using I = llvm::Intrinsic::IndependentIntrinsics;
  switch (kind) {
  case Combine::AddI: return ir.CreateAdd(a, b);
  case Combine::AddF: return ir.CreateFAdd(a, b);
  case Combine::MulI: return ir.CreateMul(a, b);
  case Combine::MulF: return ir.CreateFMul(a, b);
  case Combine::MaxS: return ir.CreateBinaryIntrinsic(I::smax, a, b);
  case Combine::MaxU: return ir.CreateBinaryIntrinsic(I::umax, a, b);
  case Combine::MaxF: return ir.CreateBinaryIntrinsic(atomic ? I::maxnum : I::maximum, a, b);
  case Combine::MinS: return ir.CreateBinaryIntrinsic(I::smin, a, b);
  case Combine::MinU: return ir.CreateBinaryIntrinsic(I::umin, a, b);
  case Combine::MinF: return ir.CreateBinaryIntrinsic(atomic ? I::minnum : I::minimum, a, b);
  case Combine::And: return ir.CreateAnd(a, b);
  case Combine::Or: return ir.CreateOr(a, b);
  case Combine::Xor: return ir.CreateXor(a, b);
  case Combine::Exchange: return b;
  }
  return nullptr;
}

static llvm::AtomicRMWInst::BinOp nativeOp(Combine kind) {
  using R = llvm::AtomicRMWInst;
  switch (kind) {
  case Combine::AddI: return R::Add;
  case Combine::AddF: return R::FAdd;
  case Combine::MaxS: return R::Max;
  case Combine::MaxU: return R::UMax;
  case Combine::MaxF: return R::FMax;
  case Combine::MinS: return R::Min;
  case Combine::MinU: return R::UMin;
  case Combine::MinF: return R::FMin;
  case Combine::And: return R::And;
  case Combine::Or: return R::Or;
  case Combine::Xor: return R::Xor;
  case Combine::Exchange: return R::Xchg;
  case Combine::MulI:
  case Combine::MulF: break;  // the verifier refuses them
  }
  return R::BAD_BINOP;
}

static llvm::Type* bitsType(llvm::IRBuilder<>& ir, mlir::Type type) { return ir.getIntNTy(elementBytes(type) * 8); }

Value* emitAtomicRmw(llvm::IRBuilder<>& ir, Combine kind, mlir::Type type, Value* pointer, Value* value,
                     ir::Order order, bool blockPrivate) {
  llvm::Align align(elementBytes(type));
  if (!supportsAtomics(type))
    return nullptr;
  if (blockPrivate) {
    Value* old = ir.CreateAlignedLoad(value->getType(), pointer, align);
    ir.CreateAlignedStore(emitCombine(ir, kind, old, value, true), pointer, align);
    return old;
  }
  return ir.CreateAtomicRMW(nativeOp(kind), pointer, value, align, orderingOf(order));
}

Value* emitAtomicCas(llvm::IRBuilder<>& ir, mlir::Type type, Value* pointer, Value* expected, Value* desired,
                     ir::Order order, bool blockPrivate) {
  if (!supportsAtomics(type))
    return nullptr;
  llvm::Align align(elementBytes(type));
  llvm::Type* bits = bitsType(ir, type);
  Value *expectedBits = ir.CreateBitCast(expected, bits), *desiredBits = ir.CreateBitCast(desired, bits);
  if (blockPrivate) {
    Value* old = ir.CreateAlignedLoad(bits, pointer, align);
    ir.CreateAlignedStore(ir.CreateSelect(ir.CreateICmpEQ(old, expectedBits), desiredBits, old), pointer, align);
    return ir.CreateBitCast(old, expected->getType());
  }
  AtomicOrdering failure = llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(orderingOf(order));
  auto* exchange = ir.CreateAtomicCmpXchg(pointer, expectedBits, desiredBits, align, orderingOf(order), failure);
  return ir.CreateBitCast(ir.CreateExtractValue(exchange, 0), expected->getType());
}

Value* emitAtomicLoad(llvm::IRBuilder<>& ir, mlir::Type type, Value* pointer, ir::Order order, bool blockPrivate) {
  if (!supportsAtomics(type))
    return nullptr;
  auto* load = ir.CreateAlignedLoad(valueType(ir.getContext(), type), pointer, llvm::Align(elementBytes(type)));
  if (!blockPrivate)
    load->setAtomic(order == ir::Order::Relaxed ? AtomicOrdering::Monotonic : AtomicOrdering::Acquire);
  return load;
}

void emitAtomicStore(llvm::IRBuilder<>& ir, mlir::Type type, Value* value, Value* pointer, ir::Order order,
                     bool blockPrivate) {
  auto* store = ir.CreateAlignedStore(value, pointer, llvm::Align(elementBytes(type)));
  if (!blockPrivate)
    store->setAtomic(order == ir::Order::Relaxed ? AtomicOrdering::Monotonic : AtomicOrdering::Release);
}

}  // namespace vortex::target::cpu::emit
