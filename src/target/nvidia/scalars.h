// How scalars and vectors of vxt look as LLVM values for NVPTX, and their arithmetic.
//
// Values: i1 as i1, index as i64, f16 as half, bf16 as bfloat, f8 as i8 bits. Memory: the same, except that bool is one byte.
#pragma once

#include "target/interface/elementwise.h"

#include <mlir/IR/BuiltinTypes.h>

namespace vortex::target::nvidia {

llvm::Type* valueType(llvm::LLVMContext& context, mlir::Type type, unsigned lanes = 1);
llvm::Type* memoryType(llvm::LLVMContext& context, mlir::Type type, unsigned lanes = 1);
/// Lanes of a vector type, 1 for scalars.
unsigned lanesOf(mlir::Type type);
/// Bits of a constant, splat over `lanes`; dense vectors element by element.
llvm::Constant* constantValue(llvm::LLVMContext& context, mlir::Attribute attribute, unsigned lanes = 1);
llvm::Value* toMemory(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value);
llvm::Value* fromMemory(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* stored);

/// Arithmetic: f16 and bf16 through f32 with the hardware's conversions; exp by the special function unit with an error below 2 ULP, the rest by
/// target/interface/math.
class NvidiaScalars : public ScalarModel {
public:
  explicit NvidiaScalars(double tanhError) : tanhError_(tanhError) {}

  llvm::Type* type(llvm::LLVMContext& context, mlir::Type type, unsigned lanes) const override {
    return valueType(context, type, lanes);
  }
  llvm::Constant* constant(llvm::LLVMContext& context, mlir::Attribute value, unsigned lanes) const override {
    return constantValue(context, value, lanes);
  }
  bool isNarrow(mlir::Type type) const override;
  llvm::Value* widen(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value) const override;
  llvm::Value* narrow(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value) const override;
  llvm::Value* unary(llvm::IRBuilder<>& ir, math::Unary function, llvm::Value* x,
                     const math::Form& form) const override;
  llvm::Value* divide(llvm::IRBuilder<>& ir, llvm::Value* x, llvm::Value* y, const math::Form& form) const override;
  llvm::Value* binary(llvm::IRBuilder<>& ir, math::Binary function, llvm::Value* x, llvm::Value* y) const override;

private:
  double tanhError_;  ///< relative, of tanh.approx
};

}  // namespace vortex::target::nvidia
