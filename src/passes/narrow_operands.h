// Products of operands that were widened before, as products of the narrow ones.
#pragma once

#include "ir/vx.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace vortex::passes {

/// `(x as i32) @ (w as i32)` of i8 tensors becomes the product of those whose sums are i32, and the same of f16, bf16 and f8 in f32: `vx.dot` widens its operands
/// itself, so the result is what it was. Also through transposes, repetitions, slices and reshapes, in any order. Operands that are widened without a sign
/// keep that, right before the product. Products of floats with ir::kOperandsAsWritten stay.
void narrowOperands(mlir::ModuleOp module);

/// Operands of products outside of control flow that are repeated along a batch and then converted are converted before: once for all of the batch.
void convertBeforeRepeating(ir::KernelOp kernel);

/// The tile of `element`s that `value` widens, moved like `value` moves it: transposed, repeated, sliced, regrouped. Null if there is none.
mlir::Value beforeWidening(mlir::OpBuilder& builder, mlir::Value value, mlir::Type element);

/// `vx-narrow-operands`.
std::unique_ptr<mlir::Pass> createNarrowOperandsPass();

}  // namespace vortex::passes
