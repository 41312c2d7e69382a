#include "base/text.h"
#include "host/evaluator_state.h"

namespace vortex::host {

using namespace lang;

static std::optional<int64_t> evaluateAtom(const DimAtom& atom, const Frame& frame);

static std::optional<int64_t> evaluateDim(const DimExpr& dim, const Frame& frame) {
  int64_t sum = 0;
  for (const auto& [monomial, coefficient] : dim.terms()) {
    int64_t product = coefficient;
    for (const DimAtom& atom : monomial) {
      auto value = evaluateAtom(atom, frame);
      if (!value)
        return std::nullopt;
      product *= *value;
    }
    sum += product;
  }
  return sum;
}

static std::optional<int64_t> evaluateAtom(const DimAtom& atom, const Frame& frame) {
  if (atom.kind == DimAtom::Kind::Variable)
    return atom.id < frame.dims.size() ? frame.dims[atom.id] : std::nullopt;
  if (atom.kind == DimAtom::Kind::Opaque) {
    auto found = frame.function->extentVariables.find(atom.id);
    if (found == frame.function->extentVariables.end())
      return std::nullopt;
    auto* value = std::get_if<int64_t>(&frame.slots[found->second->index].data);
    return value ? std::optional(*value) : std::nullopt;
  }
  auto a = evaluateDim(atom.operands[0], frame), b = evaluateDim(atom.operands[1], frame);
  return a && b ? std::optional(applyToExtents(atom.kind, *a, *b)) : std::nullopt;
}

std::optional<int64_t> Evaluator::evaluate(const DimExpr& dim) const { return evaluateDim(dim, *frame_); }

/// Binds free dimension variables of a declared tensor type to a value's extents and checks the others.
bool Evaluator::bindShape(Type type, const Value& value, const Expr& at) {
  type = stripRef(type);
  if (type && (type->kind == lang::TypeKind::Struct || type->kind == lang::TypeKind::Tuple)) {
    Value whole = deref(value, at);
    auto* parts = std::get_if<std::shared_ptr<Aggregate>>(&whole.data);
    for (size_t i = 0; parts && i < type->elems.size() && i < (*parts)->fields.size(); ++i)
      if (!bindShape(type->elems[i], (*parts)->fields[i], at))
        return false;
    return true;
  }
  if (type && type->kind == lang::TypeKind::Array) {
    Value whole = deref(value, at);
    auto* list = std::get_if<VecValue>(&whole.data);
    for (size_t i = 0; list && !list->storage->packed && i < list->size(); ++i)
      if (!bindShape(type->elem, list->storage->values[list->begin + i], at))
        return false;
    return true;
  }
  if (!type || !type->isTensor())
    return true;
  Value tensor = deref(value, at);
  if (!std::holds_alternative<TensorValue>(tensor.data))
    return true;
  const auto& extents = tensor.asTensor().extents;
  if (extents.size() != type->shape.size()) {
    fail("E0705", at,
         base::concat("a tensor of rank ", extents.size(), " where ", text(type, frame_->function->dimNames()),
                      " is expected"));
    return false;
  }
  for (size_t dim = 0; dim < extents.size(); ++dim) {
    const DimExpr& expected = type->shape[dim];
    if (auto variable = expected.asVariable();
        variable && *variable < frame_->dims.size() && !frame_->dims[*variable]) {
      frame_->dims[*variable] = extents[dim];
      continue;
    }
    // Terms without a name are variables, which may have changed since: only what declares an extent compares it.
    const bool isCompared = !expected.hasOpaque() || (at.kind == ExprKind::Let && at.hasOp);
    auto known = isCompared ? evaluate(expected) : std::nullopt;
    if (known && *known != extents[dim]) {
      auto names = frame_->function->dimNames();
      const std::string name = expected.asConstant()  ? ""
                               : expected.hasOpaque() ? "the declared extent "
                                                      : expected.text(names) + " = ";
      fail("E0705", at,
           base::concat("dimension ", dim, " has extent ", extents[dim], " where ", name, *known, " is expected"));
      return false;
    }
  }
  return true;
}

std::optional<std::vector<int64_t>> Evaluator::shapeOf(Type tensor, std::optional<int64_t> elementCount,
                                                       const Expr& at) {
  std::vector<int64_t> extents;
  std::optional<size_t> unknown;
  int64_t known = 1;
  for (size_t dim = 0; dim < tensor->shape.size(); ++dim) {
    auto value = evaluate(tensor->shape[dim]);
    if (!value && (unknown || !elementCount)) {
      fail("E0705", at, "the shape of this tensor is not known", "say its extents");
      return std::nullopt;
    }
    if (!value)
      unknown = dim;
    else
      known *= *value;
    extents.push_back(value.value_or(0));
  }
  if (unknown)
    extents[*unknown] = known == 0 ? 0 : *elementCount / known;
  int64_t total = 1;
  for (int64_t extent : extents)
    total *= extent;
  if (elementCount && total != *elementCount) {
    fail("E0705", at,
         base::concat(*elementCount, " elements do not fill a tensor of [", base::join(extents, ", "), "]"));
    return std::nullopt;
  }
  return extents;
}

}  // namespace vortex::host
