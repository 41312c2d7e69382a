// Scalar arithmetic of arith, math and vx for any number of lanes, shared by the back ends that emit LLVM IR.
#pragma once

#include "target/interface/math/math.h"

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/IRBuilder.h>
#include <mlir/IR/Operation.h>

namespace vortex::target {

/// On an exponential: math::Form::isSummed.
inline constexpr llvm::StringLiteral kSummedAttr = "vx.summed";

/// How a back end represents scalars and which functions it has.
class ScalarModel {
public:
  virtual ~ScalarModel() = default;
  /// `type`: a scalar type, or a shaped one whose element type counts.
  virtual llvm::Type* type(llvm::LLVMContext& context, mlir::Type type, unsigned lanes) const = 0;
  virtual llvm::Constant* constant(llvm::LLVMContext& context, mlir::Attribute value, unsigned lanes) const = 0;
  /// Float formats narrower than f32 that are computed on in f32.
  virtual bool isNarrow(mlir::Type type) const = 0;
  /// Narrow floats to f32; f32 and f64 as they are.
  virtual llvm::Value* widen(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value) const = 0;
  /// f32 or f64 to a narrow format, rounded once.
  virtual llvm::Value* narrow(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value) const = 0;
  /// On f32 or f64. Null: the back end does not have the function.
  virtual llvm::Value* unary(llvm::IRBuilder<>& ir, math::Unary function, llvm::Value* x,
                             const math::Form& form) const = 0;
  virtual llvm::Value* binary(llvm::IRBuilder<>& ir, math::Binary function, llvm::Value* x, llvm::Value* y) const = 0;
  virtual llvm::Value* divide(llvm::IRBuilder<>& ir, llvm::Value* x, llvm::Value* y, const math::Form&) const {
    return ir.CreateFDiv(x, y);
  }
  /// f32 or f64 toward zero, held inside `type`'s range; NaN is 0.
  virtual llvm::Value* toInteger(llvm::IRBuilder<>& ir, llvm::Value* x, llvm::Type* type, bool isSigned) const;
  /// The back end's own code for an op; null: the common way.
  virtual llvm::Value* emitSpecial(llvm::IRBuilder<>&, mlir::Operation*, llvm::ArrayRef<llvm::Value*>) const {
    return nullptr;
  }
};

/// Ops that map elements to elements: arith and math arithmetic, comparisons, casts, select, constants (splats for tensors), vx.int,
/// vx.float_to_int. Result types may be scalars or tensors; only the element types matter here.
bool isElementwise(mlir::Operation* op);

/// The op's single result for `lanes` elements: operands as the model has them, all scalars (lanes == 1) or <lanes x T>.
/// Adds no basic blocks but where the model does, for quotients. Fast-math flags are those of the op. Integer division is total whatever the op says, so that
/// inactive lanes never trap. Null: the op is not elementwise or its types or functions are not supported.
llvm::Value* emitElementwise(llvm::IRBuilder<>& ir, const ScalarModel& model, mlir::Operation* op,
                             llvm::ArrayRef<llvm::Value*> operands, unsigned lanes);

/// LLVM predicate of an arith.cmpi.
llvm::CmpInst::Predicate integerPredicate(mlir::Operation* compare);

}  // namespace vortex::target
