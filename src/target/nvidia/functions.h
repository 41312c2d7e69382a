// Math functions on one f32 or f64 in the instructions of NVIDIA GPUs.
#pragma once

#include "target/interface/math/math.h"

#include <llvm/IR/IRBuilder.h>

namespace vortex::target::nvidia {

/// Null: not available on this back end. `tanhError`: relative, of tanh.approx (chip::Gpu).
llvm::Value* emitUnary(llvm::IRBuilder<>& ir, math::Unary function, llvm::Value* x, const math::Form& form,
                       double tanhError);
llvm::Value* emitDivision(llvm::IRBuilder<>& ir, llvm::Value* x, llvm::Value* y, const math::Form& form);
/// Of two vectors of f32, correctly rounded. Adds basic blocks.
llvm::Value* emitQuotients(llvm::IRBuilder<>& ir, llvm::Value* x, llvm::Value* y);
/// f32 or a vector of them to integers of at most 32 bits, as ScalarModel::toInteger.
llvm::Value* emitToInteger(llvm::IRBuilder<>& ir, llvm::Value* x, llvm::Type* type, bool isSigned);
llvm::Value* emitBinary(llvm::IRBuilder<>& ir, math::Binary function, llvm::Value* x, llvm::Value* y);

}  // namespace vortex::target::nvidia
