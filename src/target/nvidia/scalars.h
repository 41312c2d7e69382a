// The arithmetic of vxt's scalars and vectors for NVPTX.
#pragma once

#include "target/gpu/llvm_values.h"
#include "target/interface/elementwise.h"

namespace vortex::target::nvidia {

using gpu::constantValue;
using gpu::fromMemory;
using gpu::lanesOf;
using gpu::memoryType;
using gpu::toMemory;
using gpu::valueType;

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
  llvm::Value* toInteger(llvm::IRBuilder<>& ir, llvm::Value* x, llvm::Type* type, bool isSigned) const override;

private:
  double tanhError_;  ///< relative, of tanh.approx
};

}  // namespace vortex::target::nvidia
