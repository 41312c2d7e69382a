// Loops and branches as IR. The builder must stand at the end of an unterminated block and ends at the continuation.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

namespace vortex::target::cpu::gemm {

using Values = llvm::SmallVector<llvm::Value*, 16>;

inline llvm::BasicBlock* newBlock(llvm::IRBuilderBase& b, const char* name) {
  return llvm::BasicBlock::Create(b.getContext(), name, b.GetInsertBlock()->getParent());
}

/// for (i = begin; i < end; i += step), unsigned, with carried values; returns their last values. Emitted as a guard
/// and a do-while, the form the optimiser wants: rotating loops afterwards took a quarter of its time.
inline Values emitLoop(llvm::IRBuilderBase& b, llvm::Value* begin, llvm::Value* end, llvm::Value* step,
                       const Values& initial,
                       llvm::function_ref<Values(llvm::Value* index, const Values& carried)> body) {
  llvm::Value* runs = b.CreateICmpULT(begin, end);
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(runs);
  if (known && known->isZero())
    return initial;
  llvm::BasicBlock *inside = newBlock(b, "loop"), *exit = newBlock(b, "after"), *entry = b.GetInsertBlock();
  if (known)
    b.CreateBr(inside);
  else
    b.CreateCondBr(runs, inside, exit);
  b.SetInsertPoint(inside);
  llvm::PHINode* index = b.CreatePHI(begin->getType(), 2);
  index->addIncoming(begin, entry);
  llvm::SmallVector<llvm::PHINode*, 16> phis;
  Values carried;
  for (llvm::Value* value : initial) {
    phis.push_back(b.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, entry);
    carried.push_back(phis.back());
  }
  const Values next = body(index, carried);
  llvm::Value* nextIndex = b.CreateNUWAdd(index, step);
  llvm::BasicBlock* latch = b.GetInsertBlock();
  b.CreateCondBr(b.CreateICmpULT(nextIndex, end), inside, exit);
  index->addIncoming(nextIndex, latch);
  b.SetInsertPoint(exit);
  Values last;
  for (size_t i = 0; i < phis.size(); i++) {
    phis[i]->addIncoming(next[i], latch);
    llvm::PHINode* result = b.CreatePHI(next[i]->getType(), 2);
    result->addIncoming(next[i], latch);
    if (!known)
      result->addIncoming(initial[i], entry);
    last.push_back(result);
  }
  return last;
}

inline void emitLoop(llvm::IRBuilderBase& b, llvm::Value* begin, llvm::Value* end, llvm::Value* step,
                     llvm::function_ref<void(llvm::Value* index)> body) {
  emitLoop(b, begin, end, step, Values{}, [&](llvm::Value* index, const Values&) {
    body(index);
    return Values{};
  });
}

/// A constant condition emits one side only.
inline void emitIf(
    llvm::IRBuilderBase& b, llvm::Value* condition, llvm::function_ref<void()> then,
    llvm::function_ref<void()> otherwise = [] {}) {
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    known->isOne() ? then() : otherwise();
    return;
  }
  llvm::BasicBlock *yes = newBlock(b, "then"), *no = newBlock(b, "else"), *join = newBlock(b, "join");
  b.CreateCondBr(condition, yes, no);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(join);
  b.SetInsertPoint(no);
  otherwise();
  b.CreateBr(join);
  b.SetInsertPoint(join);
}

inline llvm::Value* emitMin(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y) {
  return b.CreateSelect(b.CreateICmpULT(x, y), x, y);
}

/// begin + ⌊(end − begin) / step⌋·step
inline llvm::Value* emitWholeEnd(llvm::IRBuilderBase& b, llvm::Value* begin, llvm::Value* end, uint64_t step) {
  llvm::Value* count = b.CreateNUWSub(end, begin);
  return b.CreateNUWAdd(begin, b.CreateNUWSub(count, b.CreateURem(count, b.getInt64(step))));
}

}  // namespace vortex::target::cpu::gemm
