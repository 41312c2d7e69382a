// Math functions on one f32 or f64 in the instructions of NVIDIA GPUs.
#pragma once

#include "target/interface/math/math.h"

#include <llvm/IR/IRBuilder.h>

namespace vortex::target::nvidia {

/// Null: not available on this back end.
llvm::Value* emitUnary(llvm::IRBuilder<>& ir, math::Unary function, llvm::Value* x);
llvm::Value* emitBinary(llvm::IRBuilder<>& ir, math::Binary function, llvm::Value* x, llvm::Value* y);

}  // namespace vortex::target::nvidia
