// One atomic operation on one element.
#pragma once

#include "ir/vx.h"

#include <llvm/IR/IRBuilder.h>

namespace vortex::target::cpu::emit {

/// old = *pointer; *pointer = combine(old, value); returns old. `blockPrivate`: only this worker touches the memory, so plain accesses
/// do. Floats: max and min follow maxNum/minNum. Null: a type that has no atomics (not 32 or 64 bits wide).
llvm::Value* emitAtomicRmw(llvm::IRBuilder<>& ir, ir::Combine kind, mlir::Type type, llvm::Value* pointer,
                           llvm::Value* value, ir::Order order, bool blockPrivate);
/// Returns the old value; floats compare as bits.
llvm::Value* emitAtomicCas(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* pointer, llvm::Value* expected,
                           llvm::Value* desired, ir::Order order, bool blockPrivate);
llvm::Value* emitAtomicLoad(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* pointer, ir::Order order,
                            bool blockPrivate);
void emitAtomicStore(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value, llvm::Value* pointer, ir::Order order,
                     bool blockPrivate);

/// combine(a, b) of scalars or vectors; `atomic`: max and min of floats ignore NaN instead of propagating it.
llvm::Value* emitCombine(llvm::IRBuilder<>& ir, ir::Combine kind, llvm::Value* a, llvm::Value* b, bool atomic);

llvm::AtomicOrdering orderingOf(ir::Order order);

bool supportsAtomics(mlir::Type type);

}  // namespace vortex::target::cpu::emit
