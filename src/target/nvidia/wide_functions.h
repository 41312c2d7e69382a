// f64 functions that NVIDIA GPUs and the common code lack.
#pragma once

#include "target/interface/math/math.h"

#include <llvm/IR/IRBuilder.h>

namespace vortex::target::nvidia {

/// x: f64. Null: not available.
llvm::Value* emitWideUnary(llvm::IRBuilder<>& ir, math::Unary function, llvm::Value* x);
llvm::Value* emitWideBinary(llvm::IRBuilder<>& ir, math::Binary function, llvm::Value* x, llvm::Value* y);

}  // namespace vortex::target::nvidia
