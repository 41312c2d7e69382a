// Math functions as straight-line vector code.
//
// Every emitter takes a scalar or fixed vector of f32 or f64 (any lane count) and returns the same type. Code is placed
// at the builder's insertion point; none of them adds basic blocks to the current function (rare cold paths live in
// internal functions of the module, created on first use). Fast-math flags of the builder are ignored. No NaN or
// infinity is treated as undefined.
//
// Largest errors measured against correctly rounded results are in accuracy.md beside this file. Tests check the bounds of
// base/float_functions.h in f32; f64 exp and log families ≤ 2 ULP, the rest libm's.
#pragma once

#include "base/float_functions.h"
#include "target/interface/vector_features.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace vortex::target::math {

enum class Unary {
#define VORTEX_FLOAT_ENUM(id, ...) id,
  VORTEX_FLOAT_FUNCTIONS(VORTEX_FLOAT_ENUM)  // round takes halves away from zero
#undef VORTEX_FLOAT_ENUM
  ExpLimited,  ///< exp of arguments that do not exceed kExpLimit: fewer instructions
  ExpNotTiny,  ///< exp, but 2^-125 or a little less in place of what is smaller: fewer instructions
  RoundEven,   ///< halves to even
  Abs,
};

/// How an operation may be computed. By default: as accurately as docs/library.md promises for its type.
struct Form {
  /// Not 0: an f32 result reaches memory only through a rounding to so many significant bits (at most 11), and is within 2^-5 of their last place.
  unsigned narrowBits = 0;
  bool mayFlush = false;  ///< results below 2^-126 may become 0
  bool isNormal = false;  ///< the argument (the divisor) is 0, infinite, NaN or of a size in 2^-100 … 2^100
  bool isFarFromOne =
      false;  ///< the argument of a logarithm is so far from 1 that an absolute error of 2^-22 does not matter
  bool isSummed =
      false;  ///< only a sum of such results has it, the largest of which is 1: what counts is the error beside that one
};

/// ExpLimited is wrong beyond it, not undefined.
inline constexpr double kExpLimit = 43;

enum class Binary {
  Pow,  ///< C's pow, all special cases
  Min,
  Max,  ///< IEEE minNum/maxNum: the other operand when one is NaN; -0 < +0 not guaranteed
  MinNan,
  MaxNan,  ///< NaN when one is NaN
  Mod,     ///< C's fmod: sign of the dividend; x mod 0 is NaN
  Atan2,
};

/// sin, cos, tan are accurate for every finite argument.
llvm::Value* emitUnary(llvm::IRBuilderBase& builder, const VectorFeatures& features, Unary function, llvm::Value* x,
                       const Form& form = {});
llvm::Value* emitBinary(llvm::IRBuilderBase& builder, const VectorFeatures& features, Binary function, llvm::Value* x,
                        llvm::Value* y);

}  // namespace vortex::target::math
