// Structured control flow for IRBuilder code. Bodies may add basic blocks; the builder ends after the construct.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

namespace vortex::target {

using Values = llvm::SmallVector<llvm::Value*>;

/// for (iv = lower; iv < upper (signed); iv += step) carried = body(iv, carried). i64 bounds, step > 0. Returns the last values.
Values emitFor(llvm::IRBuilder<>& ir, llvm::Value* lower, llvm::Value* upper, llvm::Value* step,
               llvm::ArrayRef<llvm::Value*> carried,
               llvm::function_ref<Values(llvm::Value* iv, llvm::ArrayRef<llvm::Value*> carried)> body);
void emitFor(llvm::IRBuilder<>& ir, llvm::Value* lower, llvm::Value* upper, llvm::Value* step,
             llvm::function_ref<void(llvm::Value* iv)> body);

/// condition: i1. Both sides return the same number and types of values. A constant condition emits one side only.
Values emitIf(llvm::IRBuilder<>& ir, llvm::Value* condition, llvm::function_ref<Values()> thenBody,
              llvm::function_ref<Values()> elseBody);
void emitIf(llvm::IRBuilder<>& ir, llvm::Value* condition, llvm::function_ref<void()> thenBody);

/// while (before(args) is true) args = after(forwarded). `before` returns the i1 condition and sets `forwarded`, which `after` gets and
/// whose last values are the results.
Values emitWhile(llvm::IRBuilder<>& ir, llvm::ArrayRef<llvm::Value*> initial,
                 llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*> args, Values& forwarded)> before,
                 llvm::function_ref<Values(llvm::ArrayRef<llvm::Value*> forwarded)> after);

/// A stack slot in the entry block of the current function.
llvm::AllocaInst* entryAlloca(llvm::IRBuilder<>& ir, llvm::Type* type, uint64_t align = 64);

}  // namespace vortex::target
