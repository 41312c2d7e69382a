// Functions that stay functions: LLVM functions of scalars, which one thread runs.
#pragma once

#include "target/cpu/emit/emitter.h"

#include <mlir/Dialect/Func/IR/FuncOps.h>

namespace vortex::target::cpu::emit {

/// The called function, emitted at its first call.
llvm::Function* functionOf(ModuleState& state, mlir::func::CallOp call);
/// A call with these values; the results, one by one.
Values emitCall(llvm::IRBuilder<>& ir, llvm::Function* function, llvm::ArrayRef<llvm::Value*> arguments);

}  // namespace vortex::target::cpu::emit
