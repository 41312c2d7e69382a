#include "ir/vx.h"
#include "ir/vx_checked.h"
#include "ir/vxnv.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectImplementation.h"

namespace vortex::ir {

void VxDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ir/vx_ops.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/vx_checked_ops.cpp.inc"
      >();
  registerAttributesAndTypes();
}

mlir::Operation* VxDialect::materializeConstant(mlir::OpBuilder& builder, mlir::Attribute value, mlir::Type type,
                                                mlir::Location loc) {
  return mlir::arith::ConstantOp::materialize(builder, value, type, loc);
}

void registerVxDialects(mlir::DialectRegistry& registry) {
  registry.insert<VxDialect, vxt::VxtDialect, vxnv::VxnvDialect, mlir::vector::VectorDialect, mlir::arith::ArithDialect,
                  mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::func::FuncDialect, mlir::BuiltinDialect>();
}

bool isElementwise(mlir::Operation* op) {
  // arith.select takes a scalar condition with tensor values, which the trait allows for as well.
  return mlir::OpTrait::hasElementwiseMappableTraits(op) || llvm::isa<mlir::arith::SelectOp>(op);
}

bool isFloatFunction(mlir::Operation* op) {
  return llvm::isa<mlir::math::MathDialect>(op->getDialect()) || llvm::isa<SigmoidOp, ErfcOp>(op);
}

bool isFloatCombine(Combine kind) {
  return kind == Combine::AddF || kind == Combine::MulF || kind == Combine::MaxF || kind == Combine::MinF;
}

static mlir::TypedAttr neutralFloat(Combine kind, mlir::FloatType type) {
  const llvm::fltSemantics& semantics = type.getFloatSemantics();
  switch (kind) {
  case Combine::AddF:
    // -0.0 + x is x for every x, +0.0 is not for x = -0.0.
    return mlir::FloatAttr::get(type, llvm::APFloat::getZero(semantics, true));
  case Combine::MulF: return mlir::FloatAttr::get(type, llvm::APFloat(semantics, 1));
  default: {
    bool negative = kind == Combine::MaxF;
    llvm::APFloat infinity = llvm::APFloat::getInf(semantics, negative);
    // Formats without infinities (f8E4M3FN) convert it to NaN: use the largest finite value.
    bool usable = infinity.isInfinity();
    return mlir::FloatAttr::get(type, usable ? infinity : llvm::APFloat::getLargest(semantics, negative));
  }
  }
}

mlir::TypedAttr neutralElement(Combine kind, mlir::Type elementType) {
  if (auto floatType = llvm::dyn_cast<mlir::FloatType>(elementType))
    return isFloatCombine(kind) ? neutralFloat(kind, floatType) : mlir::TypedAttr();
  unsigned width = elementType.isIndex() ? 64 : elementType.getIntOrFloatBitWidth();
  auto attribute = [&](const llvm::APInt& value) { return mlir::IntegerAttr::get(elementType, value); };
  switch (kind) {
  case Combine::AddI:
  case Combine::Or:
  case Combine::Xor:
  case Combine::MaxU: return attribute(llvm::APInt::getZero(width));
  case Combine::MulI: return attribute(llvm::APInt(width, 1));
  case Combine::MaxS: return attribute(llvm::APInt::getSignedMinValue(width));
  case Combine::MinS: return attribute(llvm::APInt::getSignedMaxValue(width));
  case Combine::MinU:
  case Combine::And: return attribute(llvm::APInt::getAllOnes(width));
  default: return {};
  }
}

ThreadsOp enclosingThreads(mlir::Operation* op) { return op->getParentOfType<ThreadsOp>(); }

}  // namespace vortex::ir

#include "ir/vx_dialect.cpp.inc"
#include "ir/vx_enums.cpp.inc"
