#include "base/text.h"
#include "host/evaluator_state.h"
#include "host/format_number.h"
#include "lang/sema/element.h"

#include <algorithm>

namespace vortex::host {

using namespace lang;

static Reference toSlot(Value* slot) {
  Reference reference;
  reference.slot = slot;
  return reference;
}

static Reference toTemporary(Value value) {
  Reference reference;
  reference.temporary = std::make_shared<Value>(std::move(value));
  return reference;
}

static Reference toElement(std::shared_ptr<VecStorage> vec, size_t index) {
  Reference reference;
  reference.vec = std::move(vec);
  reference.index = index;
  return reference;
}

/// Of a reference to no packed scalar.
static Value& referent(const Reference& reference) {
  return reference.slot        ? *reference.slot
         : reference.temporary ? *reference.temporary
                               : reference.vec->values[reference.index];
}

/// A part of what `whole` leads to, which lives as long.
static Reference toPart(const Reference& whole, Value* part) {
  Reference reference = toSlot(part);
  if (whole.temporary)
    reference.temporary = std::shared_ptr<Value>(whole.temporary, part);
  else if (whole.vec)
    reference.temporary = std::shared_ptr<Value>(whole.vec, part);
  return reference;
}

Value* Evaluator::slotOf(const Variable* variable) { return &frame_->slots[variable->index]; }

Reference Evaluator::place(const Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Var: return toSlot(slotOf(expr.variable));
  case ExprKind::Deref: {
    Value value = eval(*expr.args[0]);
    if (!interrupted() && value.isReference())
      return value.asReference();
    return toTemporary(std::move(value));
  }
  case ExprKind::Field: {
    Reference holder = place(*expr.args[0]);
    if (interrupted())
      return {};
    while (referent(holder).isReference())
      holder = Reference(referent(holder).asReference());
    return toPart(holder, &referent(holder).asAggregate().fields[static_cast<size_t>(expr.ints[0])]);
  }
  case ExprKind::Element: {
    Value base = deref(eval(*expr.args[0]), expr);
    if (interrupted())
      return {};
    Value index = eval(*expr.args[1]);
    if (interrupted())
      return {};
    if (!std::holds_alternative<VecValue>(base.data)) {
      fail("E0701", expr, "device memory cannot be read or written by host code", "an element of a tensor",
           "copy it with `.to_host()` first");
      return {};
    }
    const VecValue& vec = base.asVec();
    auto at = checkedIndex(index, vec.size(), *expr.args[1]);
    if (!at)
      return {};
    return toElement(vec.storage, vec.begin + *at);
  }
  default: {
    Value value = eval(expr);
    if (interrupted())
      return {};
    if (value.isReference())
      return value.asReference();
    return toTemporary(std::move(value));
  }
  }
}

Value Evaluator::load(const Reference& reference, const Expr&) {
  if (reference.slot)
    return copyOf(*reference.slot);
  if (reference.vec)
    return reference.vec->at(reference.index);
  return reference.temporary ? copyOf(*reference.temporary) : Value();
}

void Evaluator::store(const Reference& reference, const Value& value) {
  if (reference.slot)
    *reference.slot = value;
  else if (reference.vec)
    reference.vec->set(reference.index, value);
  else if (reference.temporary)
    *reference.temporary = value;
}

Value Evaluator::deref(const Value& value, const Expr& at) {
  Value current = value;
  while (current.isReference())
    current = load(current.asReference(), at);
  return current;
}

Value Evaluator::evalAssign(const Expr& expr) {
  Value value = eval(*expr.args[1]);
  if (interrupted())
    return {};
  Reference target = place(*expr.args[0]);
  if (interrupted())
    return {};
  const Value* field = target.slot;
  // Assigning through a variable that holds a reference writes the referent.
  while (target.slot && target.slot->isReference() && expr.args[0]->type && expr.args[0]->type->kind != TypeKind::Ref)
    target = target.slot->asReference();
  if (target.temporary && !target.slot && !target.vec)
    return fail("E0706", expr, "a part of a list cannot be assigned", "this is a slice",
                "assign its elements in a loop");
  if (expr.hasOp) {
    Type type = stripRef(expr.args[0]->type);
    Value old = load(target, expr);
    if (type->kind == TypeKind::String)
      value = Value::text(old.asText() + value.asText());
    else if (type->kind == TypeKind::Scalar)
      value = binary(expr.binaryOp, type->scalar, old, value, expr);
    else
      return fail("E0706", expr, "tensors are computed in kernels, not on the host");
  } else if (expr.args[0]->type && !bindShape(expr.args[0]->type, value, expr)) {
    return {};
  }
  if (!expr.ints.empty() && field && !sharesExtents(expr, value, field - expr.args[0]->ints[0]))
    return {};
  store(target, value);
  return {};
}

/// A tensor given to a field of a struct has the extents that the struct's other fields have by the same names. A field that was
/// moved away has none.
bool Evaluator::sharesExtents(const Expr& assign, const Value& value, const Value* fields) {
  const Expr& field = *assign.args[0];
  const Value given = deref(value, assign);
  for (size_t i = 0; i + 2 < assign.ints.size(); i += 3) {
    const Value& other = fields[assign.ints[i + 1]];
    const auto* sibling = std::get_if<TensorValue>(&other.data);
    const int64_t have = given.asTensor().extents[static_cast<size_t>(assign.ints[i])];
    if (!sibling || sibling->extents[static_cast<size_t>(assign.ints[i + 2])] == have)
      continue;
    const lang::StructDecl& decl = *field.args[0]->type->decl;
    fail("E0705", assign,
         base::concat("extent ", assign.ints[i], " of `", decl.fields[static_cast<size_t>(field.ints[0])], "` is ",
                      have, ", but `", decl.fields[static_cast<size_t>(assign.ints[i + 1])], "` has ",
                      sibling->extents[static_cast<size_t>(assign.ints[i + 2])], " there, and `", decl.name,
                      "` calls both by one name"),
         "assigned here", base::concat("to change the extents of all fields make a new `", decl.name, "`"));
    return false;
  }
  return true;
}

/// Before it was converted to usize.
static std::string subscriptText(const Expr& subscript, const Value& value) {
  const Expr* written = &subscript;
  while (written->kind == ExprKind::Cast && lang::bitWidth(written->type->scalar) == 64 &&
         written->args[0]->type->kind == TypeKind::Scalar && lang::isInteger(written->args[0]->type->scalar))
    written = written->args[0];
  return formatNumber(written->type->scalar, value);
}

std::optional<size_t> Evaluator::checkedIndex(const Value& index, size_t size, const Expr& at) {
  int64_t i = index.asInt();
  if (i >= 0 && static_cast<uint64_t>(i) < size)
    return static_cast<size_t>(i);
  fail("E0702", at, base::concat("index ", subscriptText(at, index), " is outside a list of ", size, " elements"),
       "the index");
  return std::nullopt;
}

Value Evaluator::evalElement(const Expr& expr) {
  Reference reference = place(expr);
  return interrupted() ? Value() : load(reference, expr);
}

Value Evaluator::evalSlice(const Expr& expr) {
  Value base = deref(eval(*expr.args[0]), expr);
  if (interrupted())
    return {};
  struct Bound {
    int64_t begin, count;
    bool dropped;
  };
  std::vector<int64_t> extents;
  if (auto* vec = std::get_if<VecValue>(&base.data))
    extents = {static_cast<int64_t>(vec->size())};
  else
    extents = base.asTensor().extents;
  std::vector<Bound> bounds;
  for (size_t dim = 0; dim < expr.slices.size(); ++dim) {
    const SliceDim& slice = expr.slices[dim];
    int64_t extent = extents[dim];
    if (slice.kind == SliceDim::Kind::Full) {
      bounds.push_back({0, extent, false});
      continue;
    }
    Value begin = slice.begin ? eval(*slice.begin) : Value(int64_t{0});
    if (interrupted())
      return {};
    Value end = slice.end ? eval(*slice.end) : Value(extent - (slice.endIsLength ? begin.asInt() : 0));
    if (interrupted())
      return {};
    int64_t from = begin.asInt();
    int64_t count = slice.kind == SliceDim::Kind::Index ? 1 : slice.endIsLength ? end.asInt() : end.asInt() - from;
    if (from < 0 || count < 0 || from > extent || count > extent - from) {
      const auto written = [](const Expr* bound, const Value& value) {
        return bound ? subscriptText(*bound, value) : std::to_string(value.asInt());
      };
      const std::string first = written(slice.begin, begin), last = written(slice.end, end);
      return fail("E0702", expr,
                  slice.kind == SliceDim::Kind::Index
                      ? base::concat("element ", first, " is outside an extent of ", extent)
                      : base::concat("elements ", first, slice.endIsLength ? "..+" : "..", last,
                                     " are outside an extent of ", extent),
                  "the slice");
    }
    bounds.push_back({from, count, slice.kind == SliceDim::Kind::Index});
  }
  if (auto* vec = std::get_if<VecValue>(&base.data))
    return VecValue{vec->storage, vec->begin + static_cast<size_t>(bounds[0].begin),
                    static_cast<size_t>(bounds[0].count), true};
  auto cut = [&](const TensorValue& tensor) {
    TensorValue window = tensor;
    window.extents.clear();
    window.strides.clear();
    for (size_t dim = 0; dim < extents.size(); ++dim) {
      Bound bound = dim < bounds.size() ? bounds[dim] : Bound{0, extents[dim], false};
      window.offset += bound.begin * tensor.strides[dim];
      if (bound.dropped)
        continue;
      window.extents.push_back(bound.count);
      window.strides.push_back(tensor.strides[dim]);
    }
    return window;
  };
  TensorValue window = cut(base.asTensor());
  for (TensorValue& plane : window.planes)
    plane = cut(plane);
  return expr.ints.empty() ? window : fieldOf(window, static_cast<uint32_t>(expr.ints[0]));
}

/// The view of one field of all elements.
TensorValue Evaluator::fieldOf(const TensorValue& tensor, uint32_t field) {
  Type type = partOf(tensor.element, field);
  auto first = tensor.planes.begin() + static_cast<ptrdiff_t>(scalarsBefore(tensor.element, field));
  if (type->kind == TypeKind::Scalar)
    return *first;
  TensorValue view = tensor;
  view.element = type;
  view.planes.assign(first, first + static_cast<ptrdiff_t>(scalarCount(type)));
  return view;
}

}  // namespace vortex::host
