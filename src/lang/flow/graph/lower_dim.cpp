// Extents as values.
#include <algorithm>

#include "lang/flow/graph/lower.h"

namespace vortex::lang::flow {

ValueId Lowering::dimensionVariable(DimVarId id) {
  if (auto bound = boundDims_.find(id); bound != boundDims_.end())
    return bound->second;
  if (id < function_.dims.size()) {
    const DimBinding& binding = function_.dims[id];
    if (binding.constant)
      return values().constant(kUsize, *binding.constant);
    if (binding.isScalarValue && binding.param && *binding.param < function_.params.size())
      if (const Holder& holder = holderOf(*function_.params[*binding.param]);
          holder.slot && holder.type->kind == TypeKind::Scalar)
        for (uint32_t i = 0; i < graph_.arguments.size(); ++i)
          if (graph_.arguments[i].variable == function_.params[*binding.param])
            return values().convert(kUsize, values().argument(i, machineType(holder.type)));
  }
  return values().extent(id);
}

/// The value of a variable where it is known which.
ValueId Lowering::opaqueDimension(uint32_t id) {
  const auto named = function_.extentVariables.find(id);
  if (named == function_.extentVariables.end())
    return unknown(kUsize);
  const Holder& holder = holderOf(*named->second);
  const bool isValue = holder.slot && holder.type->kind == TypeKind::Scalar && b_.value(*holder.slot) != kNoValue;
  return isValue ? values().convert(kUsize, b_.value(*holder.slot)) : unknown(kUsize);
}

ValueId Lowering::dimensionAtom(const DimAtom& atom) {
  if (atom.kind == DimAtom::Kind::Variable)
    return dimensionVariable(atom.id);
  if (atom.kind == DimAtom::Kind::Opaque) {
    auto [found, isNew] = opaqueDims_.try_emplace(atom.id, kNoValue);
    if (isNew)
      found->second = opaqueDimension(atom.id);
    return found->second;
  }
  const ValueId lhs = dimension(atom.operands[0]), rhs = dimension(atom.operands[1]);
  const auto made = [&](Op op) { return values().op(op, kUsize, lhs, rhs); };
  switch (atom.kind) {
  case DimAtom::Kind::Div: return made(Op::Div);
  case DimAtom::Kind::CeilDiv: return made(Op::CeilDiv);
  case DimAtom::Kind::Mod: return made(Op::Rem);
  case DimAtom::Kind::Min: return made(Op::Min);
  case DimAtom::Kind::Max: return made(Op::Max);
  case DimAtom::Kind::Variable:
  case DimAtom::Kind::Opaque: break;
  }
  return b_.undefined(kUsize);
}

ValueId Lowering::dimension(const DimExpr& expr) {
  ValueId sum = values().constant(kUsize, 0);
  for (const auto& [monomial, coefficient] : expr.terms()) {
    ValueId product = values().constant(kUsize, coefficient);
    for (const DimAtom& factor : monomial)
      product = values().op(Op::Mul, kUsize, product, dimensionAtom(factor));
    sum = values().op(Op::Add, kUsize, sum, product);
  }
  return sum;
}

/// `let x: Tensor<f32, [P]> = …` gives P a value, where no parameter does.
void Lowering::bindDimensions(const Expr& expr) {
  if (!isReachable())
    return;
  const auto [variable, init] = asLet(expr);
  const Type from = stripRef(init->type);
  for (size_t i = 0; i < variable->type->shape.size(); ++i) {
    const std::optional<DimVarId> id = variable->type->shape[i].asVariable();
    if (!id || *id >= function_.dims.size() || function_.dims[*id].param || function_.dims[*id].constant)
      continue;
    // In host code a type may also name one that has its value.
    if (!graph_.isKernel && std::find(expr.ints.begin(), expr.ints.end(), *id) == expr.ints.end())
      continue;
    const bool isKnown = from->isTensor() && i < from->shape.size() && !(from->shape[i] == variable->type->shape[i]);
    const ValueId extent = isKnown ? dimension(from->shape[i]) : b_.undefined(kUsize);
    Step& step = b_.emit(StepKind::Bind, &expr);
    step.index = *id;
    step.value = extent;
    if (!isKnown)
      b_.computed(step, kUsize);
    boundDims_[*id] = step.value;
  }
}

}  // namespace vortex::lang::flow
