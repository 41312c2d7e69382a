// Inside the folder: one emitter per function. x: scalar or vector of f32 or f64.
#pragma once

#include <llvm/IR/Value.h>

#include "target/interface/math/float_code.h"

namespace vortex::target::math {

llvm::Value* emitExp(const FloatCode& code, llvm::Value* x);
llvm::Value* emitExpLimited(const FloatCode& code, llvm::Value* x);  ///< x ≤ kExpLimit
llvm::Value* emitExpNotTiny(const FloatCode& code, llvm::Value* x);  ///< at least about 2^-125
llvm::Value* emitExp2(const FloatCode& code, llvm::Value* x);
llvm::Value* emitExpm1(const FloatCode& code, llvm::Value* x);
llvm::Value* emitTanh(const FloatCode& code, llvm::Value* x);  ///< f32 only
llvm::Value* emitSigmoid(const FloatCode& code, llvm::Value* x);

llvm::Value* emitLog(const FloatCode& code, llvm::Value* x);
llvm::Value* emitLog2(const FloatCode& code, llvm::Value* x);
llvm::Value* emitLog10(const FloatCode& code, llvm::Value* x);
llvm::Value* emitLog1p(const FloatCode& code, llvm::Value* x);  ///< f32 only

enum class Trigonometric { Sin, Cos, Tan };
llvm::Value* emitTrigonometric(const FloatCode& code, Trigonometric function, llvm::Value* x);  ///< f32 only

llvm::Value* emitErf(const FloatCode& code, llvm::Value* x);                  ///< f32 only
llvm::Value* emitErfc(const FloatCode& code, llvm::Value* x);                 ///< f32 only
llvm::Value* emitPow(const FloatCode& code, llvm::Value* x, llvm::Value* y);  ///< f32 only

/// Calls the C math library's f64 function lane by lane; f32 goes through f64.
llvm::Value* emitLibm(const FloatCode& code, const char* name, std::initializer_list<llvm::Value*> arguments);

}  // namespace vortex::target::math
