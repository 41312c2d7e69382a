// Inside the folder: the longer f64 functions.
#pragma once

#include "target/interface/math/functions.h"

namespace vortex::target::math {

llvm::Value* emitWideTrigonometric(const FloatCode& code, Trigonometric function, llvm::Value* x);
llvm::Value* emitWideErf(const FloatCode& code, llvm::Value* x);
llvm::Value* emitWideErfc(const FloatCode& code, llvm::Value* x);
llvm::Value* emitWidePow(const FloatCode& code, llvm::Value* x, llvm::Value* y);
llvm::Value* emitWideMod(const FloatCode& code, llvm::Value* x, llvm::Value* y);

}  // namespace vortex::target::math
