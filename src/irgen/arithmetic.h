// Elementwise arithmetic on scalars and tiles alike, with the language's numeric rules: total integer operations, saturating float to
// integer conversion, signedness from the language's type.
#pragma once

#include "ir/vx.h"
#include "lang/sema/expr.h"

namespace vortex::irgen {

class Arithmetic {
public:
  Arithmetic(mlir::OpBuilder& builder, mlir::arith::FastMathFlags flags) : b_(builder), flags_(flags) {}

  mlir::Value integer(mlir::Location loc, mlir::Type type, __int128 value) const;
  mlir::Value real(mlir::Location loc, mlir::Type type, double value) const;
  mlir::Value index(mlir::Location loc, int64_t value) const;
  /// All zero bits: 0, 0.0, false. `type` is a scalar.
  mlir::Value zero(mlir::Location loc, mlir::Type type) const;
  /// The number with the type and extents of `like`, a scalar or tile.
  mlir::Value constantLike(mlir::Location loc, mlir::Value like, double value) const;

  /// Both operands are of scalar kind `kind` (elements of tiles alike). Comparisons give i1. And/Or do not short-circuit here.
  mlir::Value binary(mlir::Location loc, lang::BinaryOp op, lang::Scalar kind, mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value unary(mlir::Location loc, lang::UnaryOp op, lang::Scalar kind, mlir::Value value) const;
  mlir::Value cast(mlir::Location loc, mlir::Value value, lang::Scalar from, lang::Scalar to) const;
  /// A builtin that works elementwise (the first group of VORTEX_BUILTINS); null if `builtin` is another.
  /// The same bits as another type of the same width.
  mlir::Value reinterpret(mlir::Location loc, mlir::Value value, lang::Scalar to) const;
  mlir::Value call(mlir::Location loc, lang::Builtin builtin, lang::Scalar kind, mlir::ValueRange args) const;
  /// The combination of two values: sums, products, min/max (NaN-propagating), and/or/xor.
  mlir::Value combine(mlir::Location loc, ir::Combine kind, mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value power(mlir::Location loc, mlir::Value base, lang::Scalar kind, mlir::Value exponent) const;

  /// From integer kind `from` to index and back.
  mlir::Value toIndex(mlir::Location loc, mlir::Value value, lang::Scalar from) const;
  mlir::Value fromIndex(mlir::Location loc, mlir::Value value, lang::Scalar to) const;

private:
  mlir::Value compare(mlir::Location loc, lang::BinaryOp op, lang::Scalar kind, mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value intPower(mlir::Location loc, mlir::Value base, mlir::Value exponent, uint32_t width) const;
  mlir::Value constantPower(mlir::Location loc, mlir::Value base, uint64_t exponent, bool isFloat) const;
  mlir::Value isUnit(mlir::Location loc, mlir::Value base) const;
  mlir::Value multiply(mlir::Location loc, bool isFloat, mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value vxInt(mlir::Location loc, ir::IntKind kind, mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value elementaryFunction(mlir::Location loc, lang::Builtin builtin, mlir::ValueRange args) const;
  mlir::Value composedFunction(mlir::Location loc, lang::Builtin builtin, lang::Scalar kind,
                               mlir::ValueRange args) const;
  mlir::Value productHigh(mlir::Location loc, lang::Scalar kind, mlir::Value x, mlir::Value y) const;
  mlir::Value bitFunction(mlir::Location loc, lang::Builtin builtin, lang::Scalar kind, mlir::ValueRange args) const;

  mlir::OpBuilder& b_;
  mlir::arith::FastMathFlags flags_;
};

/// The scalar type, or a tile of the same extents with that element type.
mlir::Type withElement(mlir::Type like, mlir::Type element);

/// The combination a `+`-like reduction of this scalar kind uses.
ir::Combine addCombine(lang::Scalar kind);
ir::Combine mulCombine(lang::Scalar kind);
ir::Combine maxCombine(lang::Scalar kind);
ir::Combine minCombine(lang::Scalar kind);

}  // namespace vortex::irgen
