// #vx.size: integer expressions over the entry's arguments, and their form over launch slots.
#pragma once

#include "artifact/size_expr.h"
#include "ir/vx.h"

#include <optional>

namespace vortex::ir {

/// One token of a #vx.size program.
struct SizeToken {
  enum class Kind : uint8_t { Constant, Dim, Stride, Scalar, Operator };
  Kind kind = Kind::Constant;
  int64_t value = 0;                                        ///< Constant
  uint32_t argument = 0;                                    ///< Dim, Stride, Scalar: argument number of the entry
  uint32_t dim = 0;                                         ///< Dim, Stride
  artifact::SizeExpr::Op op = artifact::SizeExpr::Op::Add;  ///< Operator
};

/// Tokens of a well-formed program (every operator has its operands, one value remains); the empty program is the constant 0.
mlir::FailureOr<llvm::SmallVector<SizeToken>>
parseSizeProgram(llvm::StringRef program, llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

// Building. Operands that are constants fold.
SizeAttr sizeConstant(mlir::MLIRContext* context, int64_t value);
SizeAttr sizeDim(mlir::MLIRContext* context, unsigned argument, unsigned dim);
SizeAttr sizeStride(mlir::MLIRContext* context, unsigned argument, unsigned dim);
SizeAttr sizeScalar(mlir::MLIRContext* context, unsigned argument);
SizeAttr sizeBinary(artifact::SizeExpr::Op op, SizeAttr lhs, SizeAttr rhs);
SizeAttr sizeUnary(artifact::SizeExpr::Op op, SizeAttr operand);
/// The value of an expression that reads no argument.
std::optional<int64_t> constantSize(SizeAttr size);

/// First launch slot of every argument, and the total as last element: a view of rank r takes 1 + 2r slots
/// (pointer, extents, strides), a scalar one.
llvm::SmallVector<uint32_t> argumentSlots(mlir::TypeRange argumentTypes);

/// Fails with a diagnostic when the expression names an argument or dimension the types do not have.
mlir::FailureOr<artifact::SizeExpr> toSizeExpr(SizeAttr size, mlir::TypeRange argumentTypes,
                                               llvm::function_ref<mlir::InFlightDiagnostic()> emitError);
/// Fails when the expression reads a slot that is a data pointer or beyond the arguments.
mlir::FailureOr<SizeAttr> fromSizeExpr(mlir::MLIRContext* context, const artifact::SizeExpr& expr,
                                       mlir::TypeRange argumentTypes);

}  // namespace vortex::ir
