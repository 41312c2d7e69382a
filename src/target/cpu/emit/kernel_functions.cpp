#include "target/cpu/emit/kernel_functions.h"

#include "ir/size_attr.h"
#include "ir/vx.h"
#include "target/cpu/codegen/emit_object.h"
#include "target/interface/describe.h"

namespace vortex::target::cpu::emit {

using llvm::Value;

namespace {

struct Tensors {
  llvm::SmallVector<uint32_t> pointerSlots;  ///< of every tensor argument
  struct InnerStride {
    uint32_t slot;
    int64_t usual;
  };
  llvm::SmallVector<InnerStride> innerStrides;  ///< of the user's tensors that the kernel touches
};

Tensors tensorsOf(ModuleState& state, ir::KernelOp kernel) {
  Tensors tensors;
  llvm::SmallVector<uint32_t> slots = ir::argumentSlots(kernel.getArgumentTypes());
  for (auto [i, argument] : llvm::enumerate(kernel.getBody().getArguments())) {
    auto type = mlir::dyn_cast<ir::ViewType>(argument.getType());
    if (!type)
      continue;
    tensors.pointerSlots.push_back(slots[i]);
    if (type.getRank() > 0 && i < state.kernel.params.size() && !argument.use_empty())
      tensors.innerStrides.push_back(
          {static_cast<uint32_t>(slots[i] + 2 * type.getRank()), innermostStride(state.kernel, i)});
  }
  return tensors;
}

llvm::Function* createBody(ModuleState& state, ir::KernelOp kernel, const std::string& name, unsigned tensors) {
  llvm::LLVMContext& context = state.module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  llvm::SmallVector<llvm::Type*> types(3 + tensors, pointer);
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context), types, false);
  auto* body = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, state.module);
  for (llvm::Argument& argument : body->args()) {
    // What other blocks write while this one runs counts as written by the barriers of the grid.
    const bool isTensor = argument.getArgNo() >= 3;
    if (!isTensor || !kernel->hasAttr(ir::kCooperativeAttr))
      argument.addAttr(llvm::Attribute::NoAlias);
    if (argument.getArgNo() < 2)
      argument.addAttr(llvm::Attribute::ReadOnly);
  }
  body->getArg(2)->addAttr(llvm::Attribute::getWithAlignment(context, llvm::Align(64)));
  // Inlining would lose the noalias facts, and the two versions are never both hot.
  body->addFnAttr(llvm::Attribute::NoInline);
  body->addFnAttr(llvm::Attribute::NoUnwind);
  return body;
}

size::Expr emitBody(ModuleState& state, ir::KernelOp kernel, llvm::Function* function, bool unitStrides) {
  Emitter emitter(state, kernel, function, unitStrides);
  emitter.run();
  return emitter.scratch->peak();
}

}  // namespace

size::Expr emitKernelFunctions(ModuleState& state, ir::KernelOp kernel, const std::string& symbol) {
  Tensors tensors = tensorsOf(state, kernel);
  llvm::LLVMContext& context = state.module.getContext();
  llvm::Type* pointer = llvm::PointerType::get(context, 0);
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context), {pointer, pointer}, false);
  auto* entry = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol, state.module);
  codegen::markEntryPoint(*entry);
  llvm::IRBuilder<> ir(llvm::BasicBlock::Create(context, "entry", entry));
  auto slot = [&](uint32_t index, llvm::Type* as) -> Value* {
    return ir.CreateLoad(as, ir.CreateConstGEP1_32(ir.getInt64Ty(), entry->getArg(0), index));
  };
  Values arguments{entry->getArg(0), entry->getArg(1)};
  arguments.push_back(ir.CreateLoad(
      pointer, ir.CreateConstGEP1_64(ir.getInt8Ty(), entry->getArg(1), offsetof(artifact::CpuBlock, scratch))));
  for (uint32_t index : tensors.pointerSlots)
    arguments.push_back(slot(index, pointer));
  auto call = [&](llvm::Function* body) { ir.CreateRet(ir.CreateCall(body, arguments)); };

  llvm::Function* fast = createBody(state, kernel, symbol + ".body", tensors.pointerSlots.size());
  size::Expr scratch = emitBody(state, kernel, fast, true);
  if (tensors.innerStrides.empty()) {
    call(fast);
    return scratch;
  }
  llvm::Function* general = createBody(state, kernel, symbol + ".strided", tensors.pointerSlots.size());
  general->addFnAttr(llvm::Attribute::Cold);
  scratch = size::make(size::Op::Max, scratch, emitBody(state, kernel, general, false));
  Value* isUsual = ir.getTrue();
  for (auto [index, usual] : tensors.innerStrides)
    isUsual = ir.CreateAnd(isUsual, ir.CreateICmpEQ(slot(index, ir.getInt64Ty()), ir.getInt64(usual)));
  auto* fastBlock = llvm::BasicBlock::Create(context, "usual", entry);
  auto* generalBlock = llvm::BasicBlock::Create(context, "strided", entry);
  ir.CreateCondBr(isUsual, fastBlock, generalBlock);
  ir.SetInsertPoint(fastBlock);
  call(fast);
  ir.SetInsertPoint(generalBlock);
  call(general);
  return scratch;
}

}  // namespace vortex::target::cpu::emit
