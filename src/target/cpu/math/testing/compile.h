// For tests: compiles one emitter into void f(const In *x, const In *y, Out *out, uint64_t count), `lanes` elements at
// a time.
#pragma once

#include "target/interface/math/math.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <functional>

#include "target/cpu/codegen/emit_object.h"
#include "target/cpu/codegen/testing/load.h"

namespace vortex::target::cpu::math {

using namespace target::math;

using ElementFunction = void(const void* x, const void* y, void* out, uint64_t count);
using Emit = std::function<llvm::Value*(llvm::IRBuilderBase&, llvm::Value* x, llvm::Value* y)>;

/// lanes == 0: scalar code. `count` must be a multiple of the lanes. in, out: element types ("f32" as llvm::Type).
inline std::unique_ptr<codegen::LoadedCode> compileElements(llvm::LLVMContext& context, const codegen::Target& target,
                                                            llvm::Type* in, llvm::Type* out, uint32_t lanes,
                                                            const Emit& emit) {
  auto module = codegen::createModule(context, "elements", target);
  llvm::IRBuilder<> b(context);
  auto* pointer = b.getPtrTy();
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, b.getInt64Ty()}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "elements", *module);
  codegen::markEntryPoint(*function);
  auto* entry = llvm::BasicBlock::Create(context, "entry", function);
  auto* body = llvm::BasicBlock::Create(context, "body", function);
  auto* exit = llvm::BasicBlock::Create(context, "exit", function);
  b.SetInsertPoint(entry);
  b.CreateBr(body);
  b.SetInsertPoint(body);
  auto* index = b.CreatePHI(b.getInt64Ty(), 2);
  index->addIncoming(b.getInt64(0), entry);
  auto vectorOf = [&](llvm::Type* scalar) -> llvm::Type* {
    return lanes ? llvm::FixedVectorType::get(scalar, lanes) : scalar;
  };
  auto load = [&](uint32_t argument) {
    return b.CreateAlignedLoad(vectorOf(in), b.CreateGEP(in, function->getArg(argument), index), llvm::Align(1));
  };
  llvm::Value *x = load(0), *y = load(1);
  llvm::Value* result = emit(b, x, y);
  b.CreateAlignedStore(result, b.CreateGEP(out, function->getArg(2), index), llvm::Align(1));
  llvm::Value* next = b.CreateAdd(index, b.getInt64(lanes ? lanes : 1));
  index->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpULT(next, function->getArg(3)), body, exit);
  b.SetInsertPoint(exit);
  b.CreateRetVoid();
  return std::make_unique<codegen::LoadedCode>(*module, target);
}

}  // namespace vortex::target::cpu::math
