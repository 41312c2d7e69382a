// Atomics as PTX text: LLVM 19 drops memory order and scope on this target.
#include "target/nvidia/emitter.h"

#include <llvm/ADT/TypeSwitch.h>
#include <llvm/IR/InlineAsm.h>

namespace vortex::target::nvidia {

static std::string orderName(ir::Order order) {
  switch (order) {
  case ir::Order::Relaxed: return ".relaxed";
  case ir::Order::Acquire: return ".acquire";
  case ir::Order::Release: return ".release";
  case ir::Order::AcqRel: return ".acq_rel";
  case ir::Order::SeqCst: return ".sc";
  }
  return "";
}

static std::string scopeName(ir::Scope scope) {
  switch (scope) {
  case ir::Scope::Block: return ".cta";
  case ir::Scope::Device: return ".gpu";
  case ir::Scope::System: return ".sys";
  }
  return "";
}

static std::string spaceName(mlir::Value base) {
  return mlir::cast<vxt::PtrType>(base.getType()).getSpace() == ir::Space::Shared ? ".shared" : ".global";
}

/// "add.f32" and the like; empty: no such instruction.
static std::string operationName(ir::Combine kind, unsigned bits) {
  using ir::Combine;
  std::string width = std::to_string(bits);
  switch (kind) {
  case Combine::AddI: return ".add.u" + width;
  case Combine::AddF: return ".add.f" + width;
  case Combine::MaxS: return ".max.s" + width;
  case Combine::MaxU: return ".max.u" + width;
  case Combine::MinS: return ".min.s" + width;
  case Combine::MinU: return ".min.u" + width;
  case Combine::And: return ".and.b" + width;
  case Combine::Or: return ".or.b" + width;
  case Combine::Xor: return ".xor.b" + width;
  case Combine::Exchange: return ".exch.b" + width;
  default: return "";
  }
}

static const char* letter(llvm::Type* type) {
  if (type->isFloatTy())
    return "f";
  if (type->isDoubleTy())
    return "d";
  return type->isIntegerTy(64) ? "l" : "r";
}

/// `instruction` with $r for the result and $p for the address and the operands after it.
Value* Emitter::atomicAsm(llvm::StringRef instruction, mlir::Value base, Value* pointer,
                          llvm::ArrayRef<Value*> operands, llvm::Type* result) {
  std::string text = instruction.str(), constraints;
  bool isShared = mlir::cast<vxt::PtrType>(base.getType()).getSpace() == ir::Space::Shared;
  unsigned next = 0;
  if (!result->isVoidTy()) {
    constraints = std::string("=") + letter(result) + ",";
    text += " $0, [$1]";
    next = 1;
  } else {
    text += " [$0]";
  }
  constraints += isShared ? "r" : "l";
  llvm::SmallVector<llvm::Type*> types{pointer->getType()};
  Values arguments{pointer};
  for (Value* operand : operands) {
    text += ", $" + std::to_string(++next);
    constraints += std::string(",") + letter(operand->getType());
    types.push_back(operand->getType());
    arguments.push_back(operand);
  }
  auto* assembly =
      llvm::InlineAsm::get(llvm::FunctionType::get(result, types, false), text + ";", constraints + ",~{memory}", true);
  return ir_.CreateCall(assembly, arguments);
}

/// Maximum and minimum of floats, by compare-exchange of the bits. Stops early when the memory already holds the result.
Value* Emitter::casLoop(ir::Combine kind, mlir::Type element, mlir::Value base, Value* pointer, Value* operand,
                        llvm::StringRef qualifiers) {
  unsigned width = vxt::scalarBytes(element) * 8;
  llvm::Type* bits = ir_.getIntNTy(width);
  std::string cas = "atom" + qualifiers.str() + ".cas.b" + std::to_string(width);
  Value* first = ir_.CreateAlignedLoad(bits, pointer, llvm::Align(width / 8), true);
  auto id = kind == ir::Combine::MaxF ? llvm::Intrinsic::maxnum : llvm::Intrinsic::minnum;
  Values results = target::emitWhile(
      ir_, {first, ir_.getTrue()},
      [&](llvm::ArrayRef<Value*> arguments, Values& forwarded) {
        forwarded = {arguments[0]};
        return arguments[1];
      },
      [&](llvm::ArrayRef<Value*> forwarded) {
        Value* old = forwarded[0];
        Value* wanted = ir_.CreateBinaryIntrinsic(id, ir_.CreateBitCast(old, operand->getType()), operand);
        Value* seen = atomicAsm(cas, base, pointer, {old, ir_.CreateBitCast(wanted, bits)}, bits);
        return Values{seen, ir_.CreateICmpNE(seen, old)};
      });
  return ir_.CreateBitCast(results[0], operand->getType());
}

void Emitter::emitFence(vxt::FenceOp op) {
  const bool isTotal = op.getOrder() == ir::Order::SeqCst;  // acquire and release alone came with PTX 8.6
  std::string text = "fence" + orderName(isTotal ? ir::Order::SeqCst : ir::Order::AcqRel) + scopeName(op.getScope());
  auto* assembly = llvm::InlineAsm::get(llvm::FunctionType::get(ir_.getVoidTy(), false), text + ";", "~{memory}", true);
  ir_.CreateCall(assembly, {});
}

bool Emitter::emitAtomic(mlir::Operation* op) {
  auto qualifiers = [](auto atomic) {
    return orderName(atomic.getOrder()) + scopeName(atomic.getScope()) + spaceName(atomic.getBase());
  };
  return llvm::TypeSwitch<mlir::Operation*, bool>(op)
      .Case([&](vxt::AtomicRmwOp rmw) {
        mlir::Type element = rmw.getResult().getType();
        Value* pointer = address(rmw.getBase(), rmw.getIndex(), element);
        Value* operand = value(rmw.getValue());
        std::string operation = operationName(rmw.getKind(), vxt::scalarBytes(element) * 8);
        if (operation.empty()) {
          set(rmw, casLoop(rmw.getKind(), element, rmw.getBase(), pointer, operand, qualifiers(rmw)));
          return true;
        }
        llvm::Type* wanted = operand->getType();
        bool bitwise = rmw.getKind() == ir::Combine::Exchange && !wanted->isIntegerTy();
        if (bitwise)
          operand = ir_.CreateBitCast(operand, ir_.getIntNTy(wanted->getScalarSizeInBits()));
        if (rmw.getResult().use_empty() && rmw.getKind() != ir::Combine::Exchange &&
            (rmw.getOrder() == ir::Order::Relaxed || rmw.getOrder() == ir::Order::Release)) {
          atomicAsm("red" + qualifiers(rmw) + operation, rmw.getBase(), pointer, {operand}, ir_.getVoidTy());
          set(rmw, llvm::PoisonValue::get(wanted));
          return true;
        }
        Value* old =
            atomicAsm("atom" + qualifiers(rmw) + operation, rmw.getBase(), pointer, {operand}, operand->getType());
        set(rmw, bitwise ? ir_.CreateBitCast(old, wanted) : old);
        return true;
      })
      .Case([&](vxt::FenceOp fence) {
        emitFence(fence);
        return true;
      })
      .Case([&](vxt::AtomicCasOp cas) {
        mlir::Type element = cas.getResult().getType();
        unsigned width = vxt::scalarBytes(element) * 8;
        Value* pointer = address(cas.getBase(), cas.getIndex(), element);
        llvm::Type* bits = ir_.getIntNTy(width);
        Value* old = atomicAsm(
            "atom" + qualifiers(cas) + ".cas.b" + std::to_string(width), cas.getBase(), pointer,
            {ir_.CreateBitCast(value(cas.getExpected()), bits), ir_.CreateBitCast(value(cas.getDesired()), bits)},
            bits);
        set(cas, ir_.CreateBitCast(old, type(element)));
        return true;
      })
      .Case([&](vxt::AtomicLoadOp load) {
        mlir::Type element = load.getResult().getType();
        unsigned width = vxt::scalarBytes(element) * 8;
        ir::Order order = load.getOrder() == ir::Order::Relaxed ? ir::Order::Relaxed : ir::Order::Acquire;
        Value* raw =
            atomicAsm("ld" + orderName(order) + scopeName(load.getScope()) + spaceName(load.getBase()) + ".b" +
                          std::to_string(width),
                      load.getBase(), address(load.getBase(), load.getIndex(), element), {}, ir_.getIntNTy(width));
        set(load, ir_.CreateBitCast(raw, type(element)));
        return true;
      })
      .Case([&](vxt::AtomicStoreOp store) {
        mlir::Type element = store.getValue().getType();
        unsigned width = vxt::scalarBytes(element) * 8;
        ir::Order order = store.getOrder() == ir::Order::Relaxed ? ir::Order::Relaxed : ir::Order::Release;
        atomicAsm("st" + orderName(order) + scopeName(store.getScope()) + spaceName(store.getBase()) + ".b" +
                      std::to_string(width),
                  store.getBase(), address(store.getBase(), store.getIndex(), element),
                  {ir_.CreateBitCast(value(store.getValue()), ir_.getIntNTy(width))}, ir_.getVoidTy());
        return true;
      })
      .Default([](mlir::Operation*) { return false; });
}

}  // namespace vortex::target::nvidia
