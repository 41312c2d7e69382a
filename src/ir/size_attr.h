// #vx.size: integer expressions over the entry's arguments (src/size). Those of one context share an arena.
#pragma once

#include "ir/vx.h"

#include <optional>

namespace vortex::ir {

size::Arena& sizeArena(mlir::MLIRContext* context);
SizeAttr sizeConstant(mlir::MLIRContext* context, int64_t value);
SizeAttr sizeDim(mlir::MLIRContext* context, unsigned argument, unsigned dim);
SizeAttr sizeScalar(mlir::MLIRContext* context, unsigned argument);
/// How many clusters of so many blocks the device runs at the same time; of one block, its workers.
SizeAttr sizeClusters(mlir::MLIRContext* context, unsigned blocks = 1);
SizeAttr sizeBinary(size::Op op, SizeAttr lhs, SizeAttr rhs);
SizeAttr sizeUnary(size::Op op, SizeAttr operand);
std::optional<int64_t> constantSize(SizeAttr size);

/// First launch slot of every argument, and the total as last element: a view of rank r takes 1 + 2r slots
/// (pointer, extents, strides), a scalar one.
llvm::SmallVector<uint32_t> argumentSlots(mlir::TypeRange argumentTypes);
/// Of Dim, Stride, Address and Scalar of a verified expression.
uint32_t slotOf(const size::Node& argument, mlir::TypeRange argumentTypes);
/// What a launch slot holds.
size::Expr argumentOfSlot(mlir::MLIRContext* context, mlir::TypeRange argumentTypes, uint32_t slot);

/// Fails with a diagnostic when the expression names an argument or dimension the types do not have.
mlir::LogicalResult verifySize(SizeAttr size, mlir::TypeRange argumentTypes,
                               llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

}  // namespace vortex::ir
