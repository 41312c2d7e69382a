#include "target/interface/loops.h"

#include "base/check.h"

#include <llvm/IR/Constants.h>

namespace vortex::target {

static bool runsOnce(llvm::Value* lower, llvm::Value* upper, llvm::Value* step) {
  auto *from = llvm::dyn_cast<llvm::ConstantInt>(lower), *to = llvm::dyn_cast<llvm::ConstantInt>(upper),
       *by = llvm::dyn_cast<llvm::ConstantInt>(step);
  return from && to && by && from->getValue().slt(to->getValue()) &&
         (to->getValue() - from->getValue()).ule(by->getValue());
}

Values emitFor(llvm::IRBuilder<>& ir, llvm::Value* lower, llvm::Value* upper, llvm::Value* step,
               llvm::ArrayRef<llvm::Value*> carried,
               llvm::function_ref<Values(llvm::Value* iv, llvm::ArrayRef<llvm::Value*> carried)> body) {
  if (runsOnce(lower, upper, step))
    return body(lower, carried);
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = ir.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(ir.getContext(), "for", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "for.done", function);
  // Rotated form: the condition is tested before the first and after each iteration.
  ir.CreateCondBr(ir.CreateICmpSLT(lower, upper), head, after);
  ir.SetInsertPoint(head);
  llvm::PHINode* iv = ir.CreatePHI(lower->getType(), 2);
  iv->addIncoming(lower, before);
  llvm::SmallVector<llvm::PHINode*> phis;
  Values inside;
  for (llvm::Value* value : carried) {
    phis.push_back(ir.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, before);
    inside.push_back(phis.back());
  }
  Values next = body(iv, inside);
  VORTEX_CHECK(next.size() == carried.size());
  // No signed wrap: an upper bound within one step of the largest integer cannot come from an extent.
  llvm::Value* nextIv = ir.CreateNSWAdd(iv, step);
  llvm::BasicBlock* latch = ir.GetInsertBlock();
  ir.CreateCondBr(ir.CreateICmpSLT(nextIv, upper), head, after);
  iv->addIncoming(nextIv, latch);
  for (auto [phi, value] : llvm::zip(phis, next))
    phi->addIncoming(value, latch);
  ir.SetInsertPoint(after);
  Values results;
  for (auto [initial, value] : llvm::zip(carried, next)) {
    llvm::PHINode* result = ir.CreatePHI(initial->getType(), 2);
    result->addIncoming(initial, before);
    result->addIncoming(value, latch);
    results.push_back(result);
  }
  return results;
}

void emitFor(llvm::IRBuilder<>& ir, llvm::Value* lower, llvm::Value* upper, llvm::Value* step,
             llvm::function_ref<void(llvm::Value* iv)> body) {
  emitFor(ir, lower, upper, step, {}, [&](llvm::Value* iv, llvm::ArrayRef<llvm::Value*>) {
    body(iv);
    return Values{};
  });
}

Values emitIf(llvm::IRBuilder<>& ir, llvm::Value* condition, llvm::function_ref<Values()> thenBody,
              llvm::function_ref<Values()> elseBody) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition))
    return known->isZero() ? elseBody() : thenBody();
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  auto* thenBlock = llvm::BasicBlock::Create(ir.getContext(), "then", function);
  auto* elseBlock = llvm::BasicBlock::Create(ir.getContext(), "else", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "endif", function);
  ir.CreateCondBr(condition, thenBlock, elseBlock);
  ir.SetInsertPoint(thenBlock);
  Values thenValues = thenBody();
  thenBlock = ir.GetInsertBlock();
  ir.CreateBr(after);
  ir.SetInsertPoint(elseBlock);
  Values elseValues = elseBody();
  elseBlock = ir.GetInsertBlock();
  ir.CreateBr(after);
  VORTEX_CHECK(thenValues.size() == elseValues.size());
  ir.SetInsertPoint(after);
  Values results;
  for (auto [thenValue, elseValue] : llvm::zip(thenValues, elseValues)) {
    llvm::PHINode* phi = ir.CreatePHI(thenValue->getType(), 2);
    phi->addIncoming(thenValue, thenBlock);
    phi->addIncoming(elseValue, elseBlock);
    results.push_back(phi);
  }
  return results;
}

void emitIf(llvm::IRBuilder<>& ir, llvm::Value* condition, llvm::function_ref<void()> thenBody) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (!known->isZero())
      thenBody();
    return;
  }
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  auto* thenBlock = llvm::BasicBlock::Create(ir.getContext(), "then", function);
  auto* after = llvm::BasicBlock::Create(ir.getContext(), "endif", function);
  ir.CreateCondBr(condition, thenBlock, after);
  ir.SetInsertPoint(thenBlock);
  thenBody();
  ir.CreateBr(after);
  ir.SetInsertPoint(after);
}

Values emitWhile(llvm::IRBuilder<>& ir, llvm::ArrayRef<llvm::Value*> initial,
                 llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*> args, Values& forwarded)> before,
                 llvm::function_ref<Values(llvm::ArrayRef<llvm::Value*> forwarded)> after) {
  llvm::Function* function = ir.GetInsertBlock()->getParent();
  llvm::BasicBlock* entry = ir.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(ir.getContext(), "while", function);
  auto* body = llvm::BasicBlock::Create(ir.getContext(), "while.body", function);
  auto* done = llvm::BasicBlock::Create(ir.getContext(), "while.done", function);
  ir.CreateBr(head);
  ir.SetInsertPoint(head);
  llvm::SmallVector<llvm::PHINode*> phis;
  Values args;
  for (llvm::Value* value : initial) {
    phis.push_back(ir.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, entry);
    args.push_back(phis.back());
  }
  Values forwarded;
  llvm::Value* condition = before(args, forwarded);
  ir.CreateCondBr(condition, body, done);
  ir.SetInsertPoint(body);
  Values next = after(forwarded);
  VORTEX_CHECK(next.size() == initial.size());
  ir.CreateBr(head);
  for (auto [phi, value] : llvm::zip(phis, next))
    phi->addIncoming(value, ir.GetInsertBlock());
  ir.SetInsertPoint(done);
  return forwarded;
}

llvm::AllocaInst* entryAlloca(llvm::IRBuilder<>& ir, llvm::Type* type, uint64_t align) {
  llvm::BasicBlock& entry = ir.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> builder(&entry, entry.begin());
  llvm::AllocaInst* slot = builder.CreateAlloca(type);
  slot->setAlignment(llvm::Align(align));
  return slot;
}

}  // namespace vortex::target
