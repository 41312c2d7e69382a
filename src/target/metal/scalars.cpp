#include "target/metal/scalars.h"

#include "target/interface/math/convert.h"

#include <llvm/IR/Module.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/IR/TypeUtilities.h>
#include <optional>

namespace vortex::target::metal {

using llvm::Value;

static Value* callMetal(llvm::IRBuilder<>& ir, const char* name, llvm::ArrayRef<Value*> operands) {
  llvm::SmallVector<llvm::Type*> types(operands.size(), operands[0]->getType());
  llvm::FunctionCallee callee = ir.GetInsertBlock()->getModule()->getOrInsertFunction(
      (kMetalFunction + name).str(), llvm::FunctionType::get(types[0], types, false));
  return ir.CreateCall(callee, operands);
}

bool MetalScalars::isNarrow(mlir::Type type) const { return type.isF16() || type.isBF16() || gpu::float8Format(type); }

Value* MetalScalars::widen(llvm::IRBuilder<>& ir, mlir::Type type, Value* value) const {
  if (auto format = gpu::float8Format(type))
    return math::emitWiden(ir, VectorFeatures{}, *format, value);
  return type.isF16() || type.isBF16() ? ir.CreateFPExt(value, ir.getFloatTy()) : value;
}

Value* MetalScalars::narrow(llvm::IRBuilder<>& ir, mlir::Type type, Value* value) const {
  if (auto format = gpu::float8Format(type))
    return math::emitNarrow(ir, VectorFeatures{}, *format, value);
  return ir.CreateFPTrunc(value, gpu::valueType(ir.getContext(), type));
}

Value* MetalScalars::unary(llvm::IRBuilder<>& ir, math::Unary function, Value* x, const math::Form& form) const {
  using U = math::Unary;
  switch (function) {
  case U::Sin: return callMetal(ir, "precise::sin", {x});
  case U::Cos: return callMetal(ir, "precise::cos", {x});
  case U::Tan: return callMetal(ir, "precise::tan", {x});
  case U::Asin: return callMetal(ir, "precise::asin", {x});
  case U::Acos: return callMetal(ir, "precise::acos", {x});
  case U::Atan: return callMetal(ir, "precise::atan", {x});
  case U::Sinh: return callMetal(ir, "precise::sinh", {x});
  case U::Cosh: return callMetal(ir, "precise::cosh", {x});
  case U::Cbrt: {  // the sign apart: pow of a negative base is NaN
    Value* size = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    Value* root = callMetal(ir, "precise::pow", {size, llvm::ConstantFP::get(x->getType(), 1.0 / 3)});
    return ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, root, x);
  }
  default: return math::emitUnary(ir, VectorFeatures{.fma = true}, function, x, form);
  }
}

Value* MetalScalars::binary(llvm::IRBuilder<>& ir, math::Binary function, Value* x, Value* y) const {
  switch (function) {
  case math::Binary::Mod: return callMetal(ir, "precise::fmod", {x, y});
  case math::Binary::Atan2: return callMetal(ir, "precise::atan2", {x, y});
  case math::Binary::Pow: return callMetal(ir, "precise::pow", {x, y});  // ours computes in f64
  default: return math::emitBinary(ir, VectorFeatures{.fma = true}, function, x, y);
  }
}

Value* MetalScalars::emitSpecial(llvm::IRBuilder<>& ir, mlir::Operation* op, llvm::ArrayRef<Value*> operands) const {
  bool isSigned = llvm::isa<mlir::arith::SIToFPOp>(op);
  if (!isSigned && !llvm::isa<mlir::arith::UIToFPOp>(op))
    return nullptr;
  mlir::Type to = mlir::getElementTypeOrSelf(op->getResult(0).getType());
  if (!isNarrow(to) || operands[0]->getType()->getIntegerBitWidth() <= 16)
    return nullptr;
  return narrow(ir, to, math::emitIntToOdd(ir, operands[0], isSigned));
}

}  // namespace vortex::target::metal
