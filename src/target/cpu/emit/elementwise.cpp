#include "target/cpu/emit/elementwise.h"

#include "target/cpu/emit/types.h"

namespace vortex::target::cpu::emit {
namespace {

using llvm::Value;

/// Narrow floats are integers of their bits.
class CpuScalars : public ScalarModel {
public:
  explicit CpuScalars(const VectorFeatures& features) : features_(features) {}

  llvm::Type* type(llvm::LLVMContext& context, mlir::Type type, unsigned lanes) const override {
    return valueType(context, type, lanes);
  }
  llvm::Constant* constant(llvm::LLVMContext& context, mlir::Attribute value, unsigned lanes) const override {
    return constantValue(context, value, lanes);
  }
  bool isNarrow(mlir::Type type) const override { return narrowFormat(type).has_value(); }
  Value* widen(llvm::IRBuilder<>& ir, mlir::Type type, Value* value) const override {
    auto format = narrowFormat(type);
    return format ? math::emitWiden(ir, features_, *format, value) : value;
  }
  Value* narrow(llvm::IRBuilder<>& ir, mlir::Type type, Value* value) const override {
    return math::emitNarrow(ir, features_, *narrowFormat(type), value);
  }
  Value* unary(llvm::IRBuilder<>& ir, math::Unary function, Value* x, const math::Form& form) const override {
    return math::emitUnary(ir, features_, function, x, form);
  }
  Value* binary(llvm::IRBuilder<>& ir, math::Binary function, Value* x, Value* y) const override {
    return math::emitBinary(ir, features_, function, x, y);
  }

private:
  const VectorFeatures& features_;
};

}  // namespace

Value* emitElementwise(llvm::IRBuilder<>& ir, const VectorFeatures& features, mlir::Operation* op,
                       llvm::ArrayRef<Value*> operands, unsigned lanes) {
  return target::emitElementwise(ir, CpuScalars(features), op, operands, lanes);
}

}  // namespace vortex::target::cpu::emit
