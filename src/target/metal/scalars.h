// The arithmetic of vxt for Metal, as LLVM code that `instructions.h` prints.
#pragma once

#include "target/gpu/llvm_values.h"
#include "target/interface/elementwise.h"

namespace vortex::target::metal {

/// Functions of this prefix are printed as the Metal function behind it: "metal.precise::sin".
inline constexpr llvm::StringLiteral kMetalFunction = "metal.";

/// f16, bf16 and f8 are computed on in f32. Polynomials are those of target/interface/math; what has none in f32 alone is Metal's precise function,
/// whose error is Metal's (docs/metal.md). No f64: the writer refuses it before.
class MetalScalars : public ScalarModel {
public:
  llvm::Type* type(llvm::LLVMContext& context, mlir::Type type, unsigned lanes) const override {
    return gpu::valueType(context, type, lanes);
  }
  llvm::Constant* constant(llvm::LLVMContext& context, mlir::Attribute value, unsigned lanes) const override {
    return gpu::constantValue(context, value, lanes);
  }
  bool isNarrow(mlir::Type type) const override;
  llvm::Value* widen(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value) const override;
  llvm::Value* narrow(llvm::IRBuilder<>& ir, mlir::Type type, llvm::Value* value) const override;
  llvm::Value* unary(llvm::IRBuilder<>& ir, math::Unary function, llvm::Value* x,
                     const math::Form& form) const override;
  llvm::Value* binary(llvm::IRBuilder<>& ir, math::Binary function, llvm::Value* x, llvm::Value* y) const override;
  /// Integers to narrow floats, rounded once without f64.
  llvm::Value* emitSpecial(llvm::IRBuilder<>& ir, mlir::Operation* op,
                           llvm::ArrayRef<llvm::Value*> operands) const override;
};

}  // namespace vortex::target::metal
