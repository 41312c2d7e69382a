// The functions of one float, one row each: the language, metile, the interpreter, the back ends and their tests take what they need from here.
#pragma once

#include <cmath>

namespace vortex::base {

inline double rsqrt(double x) { return 1 / std::sqrt(x); }

/// exp(−|x|) cannot overflow, so tiny results are right.
inline double sigmoid(double x) {
  const double t = std::exp(-std::fabs(x));
  return (x < 0 ? t : 1) / (1 + t);
}

}  // namespace vortex::base

// X(enumerator, name in the language and of the C library's f64 function if it has one, MLIR op, evaluated in double, largest error that
// docs/library.md promises in f32: ULP, 0 for exact)
// clang-format off
#define VORTEX_FLOAT_FUNCTIONS(X) \
  X(Exp, "exp", mlir::math::ExpOp, std::exp, 2) \
  X(Exp2, "exp2", mlir::math::Exp2Op, std::exp2, 2) \
  X(Expm1, "expm1", mlir::math::ExpM1Op, std::expm1, 4) \
  X(Log, "log", mlir::math::LogOp, std::log, 2) \
  X(Log2, "log2", mlir::math::Log2Op, std::log2, 2) \
  X(Log10, "log10", mlir::math::Log10Op, std::log10, 2) \
  X(Log1p, "log1p", mlir::math::Log1pOp, std::log1p, 4) \
  X(Sin, "sin", mlir::math::SinOp, std::sin, 2) \
  X(Cos, "cos", mlir::math::CosOp, std::cos, 2) \
  X(Tan, "tan", mlir::math::TanOp, std::tan, 4) \
  X(Asin, "asin", mlir::math::AsinOp, std::asin, 1) \
  X(Acos, "acos", mlir::math::AcosOp, std::acos, 1) \
  X(Atan, "atan", mlir::math::AtanOp, std::atan, 1) \
  X(Sinh, "sinh", mlir::math::SinhOp, std::sinh, 1) \
  X(Cosh, "cosh", mlir::math::CoshOp, std::cosh, 1) \
  X(Tanh, "tanh", mlir::math::TanhOp, std::tanh, 2) \
  X(Sigmoid, "sigmoid", vortex::ir::SigmoidOp, vortex::base::sigmoid, 4) \
  X(Erf, "erf", mlir::math::ErfOp, std::erf, 4) \
  X(Erfc, "erfc", vortex::ir::ErfcOp, std::erfc, 6) \
  X(Sqrt, "sqrt", mlir::math::SqrtOp, std::sqrt, 0.5) \
  X(Rsqrt, "rsqrt", mlir::math::RsqrtOp, vortex::base::rsqrt, 2) \
  X(Cbrt, "cbrt", mlir::math::CbrtOp, std::cbrt, 1) \
  X(Floor, "floor", mlir::math::FloorOp, std::floor, 0) \
  X(Ceil, "ceil", mlir::math::CeilOp, std::ceil, 0) \
  X(Round, "round", mlir::math::RoundOp, std::round, 0) \
  X(Trunc, "trunc", mlir::math::TruncOp, std::trunc, 0)
// clang-format on
