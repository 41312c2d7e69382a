// f64 functions without a C library, for devices that have none. Scalars; some call internal functions of the module with loops in them.
//
// Largest errors, bounds that tests check: expm1 log1p sin cos tan asin acos atan sinh cosh tanh cbrt atan2 ≤ 4 ULP, erf and pow ≤ 16 ULP,
// erfc ≤ 64 ULP;
// fmod and round are exact. sin, cos and tan are accurate for every finite argument.
#pragma once

#include "target/interface/math/math.h"

#include <llvm/IR/IRBuilder.h>

namespace vortex::target::math {

/// x: f64, for Round f32 too. Null: not among the functions above.
llvm::Value* emitWideUnary(llvm::IRBuilderBase& builder, Unary function, llvm::Value* x);
llvm::Value* emitWideBinary(llvm::IRBuilderBase& builder, Binary function, llvm::Value* x, llvm::Value* y);

}  // namespace vortex::target::math
