// Conversions between element types and integer arithmetic with the language's total semantics. Scalars or fixed
// vectors.
#pragma once

#include "target/interface/vector_features.h"

namespace llvm {
class IRBuilderBase;
class Type;
class Value;
}  // namespace llvm

namespace vortex::target::math {

/// Storage formats narrower than f32. LLVM types in memory and in the arguments here: F16 and BF16 as i16, F8 as i8.
enum class Narrow { F16, BF16, F8E4M3, F8E5M2 };

/// Bits (i16 or i8, scalar or vector) → f32, exact; NaN stays NaN.
llvm::Value* emitWiden(llvm::IRBuilderBase& builder, const VectorFeatures& features, Narrow format, llvm::Value* bits);

/// f32 or f64 → bits, rounded once to nearest even, NaN stays NaN. Out of range, infinities included: infinity, or NaN
/// for F8E4M3, which has no infinity (as in the OCP standard without saturation).
llvm::Value* emitNarrow(llvm::IRBuilderBase& builder, const VectorFeatures& features, Narrow format,
                        llvm::Value* value);
/// Integers of at most 64 bits to f32, inexact results given an odd last bit: rounding that to fewer bits equals rounding the integer once.
llvm::Value* emitIntToOdd(llvm::IRBuilderBase& builder, llvm::Value* value, bool isSigned);

/// f32 or f64 → integer of `type` (scalar or vector type with x's lane count): toward zero, saturating, NaN → 0.
llvm::Value* emitFloatToInt(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Type* type, bool isSigned);

enum class IntOp {
  Div,  ///< x / 0 = 0; MIN / -1 = MIN
  Mod,  ///< sign of the dividend; x % 0 = 0; MIN % -1 = 0
  Shl,  ///< shift counts are taken modulo the width
  Shr,  ///< arithmetic when signed
};
llvm::Value* emitInt(llvm::IRBuilderBase& builder, IntOp op, llvm::Value* x, llvm::Value* y, bool isSigned);

}  // namespace vortex::target::math
