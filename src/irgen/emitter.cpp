#include "irgen/emitter.h"

namespace vortex::irgen {

using lang::Expr;
using lang::ExprKind;
using mlir::Location;
using mlir::Value;

mlir::arith::FastMathFlags fastMath(const lang::KernelSpec& spec) {
  if (spec.strict)
    return mlir::arith::FastMathFlags::none;
  return spec.fastMath ? mlir::arith::FastMathFlags::fast : mlir::arith::FastMathFlags::contract;
}

Emitter::Emitter(KernelContext& context, ir::KernelOp kernel)
    : context_(context), types_(context.types), facts_(context.facts), kernel_(kernel), b_(kernel.getContext()),
      math_(b_, fastMath(*context.function.kernel)) {
  const lang::Function& function = context.function;
  Location at = context.locations(function.nameRange);
  mlir::Block* body = &kernel.getBody().front();
  b_.setInsertionPointToStart(body);
  for (auto [index, parameter] : llvm::enumerate(function.params)) {
    Slot& slot = variables_[parameter];
    uint32_t first = context.entry.firstOfParam(index), count = types_.leafCount(stripRef(parameter->type));
    for (uint32_t leaf = 0; leaf < count; ++leaf)
      slot.leaves.push_back(argument(first + leaf));
  }
  for (auto [variable, index] : context.storage)
    for (uint32_t leaf = 0; leaf < types_.leafCount(variable->type); ++leaf)
      variables_[variable].leaves.push_back(argument(index + leaf));
  for (auto [id, binding] : llvm::enumerate(function.dims)) {
    if (binding.constant || !binding.param)
      continue;
    Value source = argument(context.entry.argumentOf(*binding.param, binding.fieldPath));
    if (llvm::isa<ir::ViewType>(source.getType()))
      dims_[id] = b_.create<ir::DimOp>(at, source, binding.dim);
    else
      dims_[id] = math_.toIndex(at, source, scalarOf(function.params[*binding.param]->type));
  }
  for (auto [id, binding] : llvm::enumerate(function.dims))
    if (binding.factor && !binding.constant)
      dims_[id] =
          b_.create<ir::IntOp>(at, b_.getIndexType(), ir::IntKind::DivU, dims_[id], dimValue(at, *binding.factor));
  if (!context.hasThreads)
    return;
  for (unsigned axis = 0; axis < 3; ++axis) {
    auto axisAttr = static_cast<ir::Axis>(axis);
    blockExtents_[axis] =
        context.block[axis] ? math_.index(at, *context.block[axis]) : Value(b_.create<ir::BlockDimOp>(at, axisAttr));
    Value block = b_.create<ir::BlockIdOp>(at, axisAttr);
    blockBases_[axis] = b_.create<mlir::arith::MulIOp>(at, block, blockExtents_[axis]);
  }
}

void Emitter::emitKernel(llvm::ArrayRef<const Expr*> statements) {
  Location at = context_.locations(context_.function.nameRange);
  if (const Variable* returned = facts_.flags(nullptr).returned) {
    declare(returned);
    setFlag(at, returned, false);
  }
  emitSequence(statements, nullptr);
  closeRegion();
  b_.create<ir::ReturnOp>(at);
}

}  // namespace vortex::irgen
