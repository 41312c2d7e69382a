#include "lang/sema/kernel/specialised_dims.h"

namespace vortex::lang {

static void collectDims(const Function& kernel, const DimExpr& expr, std::set<DimVarId>& dims) {
  for (const auto& [monomial, coefficient] : expr.terms())
    for (const DimAtom& atom : monomial) {
      if (atom.kind == DimAtom::Kind::Variable && dims.insert(atom.id).second && kernel.dims[atom.id].factor)
        collectDims(kernel, *kernel.dims[atom.id].factor, dims);
      for (const DimExpr& operand : atom.operands)
        collectDims(kernel, operand, dims);
    }
}

std::vector<DimVarId> specialisedDims(const Function& kernel) {
  std::set<DimVarId> dims;
  for (const auto& variable : kernel.variables) {
    Type type = variable->type;
    if (type && type->kind == TypeKind::Array)
      type = type->elem;
    bool onChip = type && type->isTensor() && !type->isValue && !variable->isParam &&
                  (type->space == Space::Shared || type->space == Space::Local);
    for (size_t i = 0; onChip && i < type->shape.size(); ++i)
      collectDims(kernel, type->shape[i], dims);
  }
  std::vector<DimVarId> result;
  for (DimVarId dim : dims)
    if (!kernel.dims[dim].constant)
      result.push_back(dim);
  return result;
}

}  // namespace vortex::lang
