// Loops and branches as IR. The builder must stand at the end of an unterminated block and ends at the continuation.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

namespace vortex::target::cpu::gemm {

using Values = llvm::SmallVector<llvm::Value *, 16>;

inline llvm::BasicBlock *newBlock(llvm::IRBuilderBase &b, const char *name) {
  return llvm::BasicBlock::Create(b.getContext(), name, b.GetInsertBlock()->getParent());
}

/// for (i = begin; i < end; i += step), unsigned, with carried values; returns their last values.
inline Values emitLoop(llvm::IRBuilderBase &b, llvm::Value *begin, llvm::Value *end, llvm::Value *step, const Values &initial,
                       llvm::function_ref<Values(llvm::Value *index, const Values &carried)> body) {
  llvm::BasicBlock *entry = b.GetInsertBlock();
  llvm::BasicBlock *header = newBlock(b, "loop"), *inside = newBlock(b, "body"), *exit = newBlock(b, "after");
  b.CreateBr(header);
  b.SetInsertPoint(header);
  llvm::PHINode *index = b.CreatePHI(begin->getType(), 2);
  index->addIncoming(begin, entry);
  llvm::SmallVector<llvm::PHINode *, 16> phis;
  Values carried;
  for (llvm::Value *value : initial) {
    phis.push_back(b.CreatePHI(value->getType(), 2));
    phis.back()->addIncoming(value, entry);
    carried.push_back(phis.back());
  }
  b.CreateCondBr(b.CreateICmpULT(index, end), inside, exit);
  b.SetInsertPoint(inside);
  const Values next = body(index, carried);
  for (size_t i = 0; i < phis.size(); i++)
    phis[i]->addIncoming(next[i], b.GetInsertBlock());
  index->addIncoming(b.CreateNUWAdd(index, step), b.GetInsertBlock());
  b.CreateBr(header);
  b.SetInsertPoint(exit);
  return carried;
}

inline void emitLoop(llvm::IRBuilderBase &b, llvm::Value *begin, llvm::Value *end, llvm::Value *step,
                     llvm::function_ref<void(llvm::Value *index)> body) {
  emitLoop(b, begin, end, step, Values{}, [&](llvm::Value *index, const Values &) {
    body(index);
    return Values{};
  });
}

/// A constant condition emits one side only.
inline void emitIf(llvm::IRBuilderBase &b, llvm::Value *condition, llvm::function_ref<void()> then,
                   llvm::function_ref<void()> otherwise = [] {}) {
  if (auto *known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
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

inline llvm::Value *emitMin(llvm::IRBuilderBase &b, llvm::Value *x, llvm::Value *y) {
  return b.CreateSelect(b.CreateICmpULT(x, y), x, y);
}

/// begin + ⌊(end − begin) / step⌋·step
inline llvm::Value *emitWholeEnd(llvm::IRBuilderBase &b, llvm::Value *begin, llvm::Value *end, uint64_t step) {
  llvm::Value *count = b.CreateNUWSub(end, begin);
  return b.CreateNUWAdd(begin, b.CreateNUWSub(count, b.CreateURem(count, b.getInt64(step))));
}

} // namespace vortex::target::cpu::gemm
