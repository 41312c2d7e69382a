// Places: from the tree to root and path, and what is read from and stored to them.
#include "lang/flow/graph/lower.h"

namespace vortex::lang::flow {

//===-- values in slots -------------------------------------------------------------------------------------------===//

Lowering::Operand Lowering::readLeaf(SlotId& next, Type type) {
  Operand out;
  switch (type->kind) {
  case TypeKind::Scalar:
  case TypeKind::Enum: {
    const ValueId value = b_.value(next);
    out.value = value == kNoValue ? b_.undefined(machineType(type)) : value;
    ++next;
    break;
  }
  case TypeKind::Ref:
  case TypeKind::Tensor: out.place = b_.alias(next++); break;
  case TypeKind::Range:
    for (int i = 0; i < 3; ++i)
      out.parts.push_back(readLeaf(next, type->elem));
    break;
  case TypeKind::Tuple:
  case TypeKind::Struct:
    for (Type each : type->elems)
      out.parts.push_back(readLeaf(next, each));
    break;
  default: break;
  }
  return out;
}

Lowering::Operand Lowering::readSlots(SlotId first, Type type) { return readLeaf(first, type); }

void Lowering::writeLeaf(SlotId& next, Type type, const Operand& operand) {
  switch (type->kind) {
  case TypeKind::Scalar:
  case TypeKind::Enum:
    b_.write(next++, operand.value == kNoValue ? b_.undefined(machineType(type)) : operand.value);
    break;
  case TypeKind::Ref:
  case TypeKind::Tensor: b_.writeAlias(next++, graph_.isKernel ? operand.place : kNoPlace); break;
  case TypeKind::Range:
    for (size_t i = 0; i < 3; ++i)
      writeLeaf(next, type->elem, i < operand.parts.size() ? operand.parts[i] : Operand());
    break;
  case TypeKind::Tuple:
  case TypeKind::Struct:
    for (size_t i = 0; i < type->elems.size(); ++i)
      writeLeaf(next, type->elems[i], i < operand.parts.size() ? operand.parts[i] : Operand());
    break;
  default: break;
  }
}

void Lowering::writeSlots(SlotId first, Type type, const Operand& operand) { writeLeaf(first, type, operand); }

/// The slot where a part of a variable that is a value begins; nothing for memory.
std::optional<SlotId> Lowering::slotOf(PlaceId id) {
  const Place& place = graph_[id];
  if (place.isUnknown() || indexOf(place.root) >= slots_.size() || !slots_[indexOf(place.root)])
    return std::nullopt;
  SlotId slot = *slots_[indexOf(place.root)];
  Type type = graph_[place.root].type;
  for (const Projection& each : place.path) {
    if (each.kind != ProjectionKind::Field || each.field >= type->elems.size())
      return std::nullopt;
    slot += leaves_.before(type, each.field);
    type = type->elems[each.field];
    if (type->kind == TypeKind::Ref || type->isTensor())
      return &each == &place.path.back() ? std::optional(slot) : std::nullopt;
  }
  return slot;
}

//===-- places ----------------------------------------------------------------------------------------------------===//

/// A value that is wanted as a place gets one.
PlaceId Lowering::materialised(const Expr& expr, const Operand& operand) {
  if (operand.place != kNoPlace)
    return operand.place;
  const Type type = stripRef(expr.type);
  const LocalId local = newLocal(type, expr.range, nullptr, storageOf(type));
  const PlaceId place = b_.root(local);
  if (const auto* leaves = leaves_.of(type)) {
    SlotId first = 0;
    bool isFirst = true;
    for (const Leaves::Leaf& leaf : *leaves) {
      const SlotId slot = leaf.isAlias ? b_.newAliasSlot() : b_.newSlot(leaf.type);
      if (isFirst)
        first = slot;
      isFirst = false;
    }
    slots_[indexOf(local)] = first;
    writeSlots(first, type, operand);
  } else if (isReachable()) {
    begin(local, expr, StepKind::Empty);
  }
  return place;
}

Lowering::Operand Lowering::placeOfBase(const Expr& expr) {
  if (!graph_.isKernel)
    return Operand{kNoValue, writtenBase(expr), {}};
  const Operand base = expr.type->kind == TypeKind::Ref ? value(expr) : place(expr);
  return base;
}

Lowering::Operand Lowering::place(const Expr& expr) {
  enter(expr);
  switch (expr.kind) {
  case ExprKind::Var: {
    if (!graph_.isKernel)
      return Operand{kNoValue, variablePlace(*expr.variable), {}};
    const Holder& holder = holderOf(*expr.variable);
    Operand out;
    const bool isView = holder.slot && expr.variable->type->isTensor();
    out.place = isView ? b_.alias(*holder.slot) : b_.root(holder.local);
    return out;
  }
  case ExprKind::Field: {
    const auto [base, number] = asField(expr);
    return field(placeOfBase(base), number, expr.type);
  }
  case ExprKind::Element: return element(expr);
  case ExprKind::Slice: return slice(expr);
  case ExprKind::Deref: {
    const Expr& reference = operandOf(expr);
    if (!graph_.isKernel && reference.kind == ExprKind::Ref)
      return placeOfBase(operandOf(reference));
    if (!graph_.isKernel)
      return Operand{kNoValue, deref(writtenBase(reference)), {}};
    return reference.kind == ExprKind::Ref ? place(operandOf(reference)) : value(reference);
  }
  default: return graph_.isKernel ? value(expr) : placeOfBase(expr);
  }
}

Lowering::Operand Lowering::field(const Operand& base, uint32_t number, Type type) {
  if (base.place == kNoPlace)
    return number < base.parts.size() ? base.parts[number] : undefined(type);
  Operand out;
  out.place = b_.extend(base.place, {.kind = ProjectionKind::Field, .field = number}, type);
  if (graph_.isKernel && type->isTensor())
    if (const auto slot = slotOf(out.place); slot && b_.isAlias(*slot))
      out.place = b_.alias(*slot);
  return out;
}

Lowering::Operand Lowering::element(const Expr& expr) {
  const auto [base, indices] = asElement(expr);
  const PlaceId of = materialised(base, placeOfBase(base));
  Projection projection;
  projection.kind = stripRef(base.type)->isTensor() ? ProjectionKind::At : ProjectionKind::Slot;
  if (projection.kind == ProjectionKind::Slot) {
    projection.index = indices.empty() ? b_.undefined(kUsize) : index(*indices[0]);
  } else {
    for (const Expr* at : indices)
      projection.dims.push_back({index(*at), kNoValue});
  }
  Operand out;
  if (graph_.isKernel && !isReachable())
    return out;
  if (graph_.isKernel && projection.kind == ProjectionKind::At) {
    Subscript subscript{&expr, b_.nextStep(), {}};
    for (size_t i = 0; i < projection.dims.size(); ++i)
      subscript.parts.push_back(
          {projection.dims[i].begin, values().constant(kUsize, 1), dimension(stripRef(base.type)->shape[i])});
    graph_.subscripts.push_back(std::move(subscript));
  }
  out.place = b_.extend(of, std::move(projection), expr.type);
  return out;
}

Lowering::Operand Lowering::slice(const Expr& expr) {
  const auto [base, dims, fieldOfElements] = asSlice(expr);
  const Type sliced = stripRef(base.type);
  PlaceId of = materialised(base, placeOfBase(base));
  Projection window{.kind = ProjectionKind::Window};
  Subscript subscript{&expr, kNoStep, {}};
  bool isWhole = true;
  size_t kept = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    const SliceDim& dim = dims[i];
    const bool isTensor = sliced->isTensor();
    const auto extent = [&] { return isTensor ? dimension(sliced->shape[i]) : unknown(kUsize); };
    isWhole = isWhole && dim.kind == SliceDim::Kind::Full;
    if (dim.kind == SliceDim::Kind::Index) {
      window.dims.push_back({index(*dim.begin), kNoValue});
      if (graph_.isKernel)
        subscript.parts.push_back({window.dims.back().begin, values().constant(kUsize, 1), extent()});
      continue;
    }
    const ValueId begin = dim.begin ? index(*dim.begin) : values().constant(kUsize, 0);
    ValueId end = dim.end ? index(*dim.end) : extent();
    const ValueId length = dim.endIsLength ? end : values().op(Op::Sub, kUsize, end, begin);
    if (dim.endIsLength)
      end = values().op(Op::Add, kUsize, begin, end);
    window.dims.push_back({begin, end});
    const Type result = stripRef(expr.type);
    if (isTensor && kept < result->shape.size() && result->shape[kept].hasOpaque())
      if (const auto& terms = result->shape[kept].terms(); terms.size() == 1 && terms.begin()->first.size() == 1)
        if (const DimAtom& atom = terms.begin()->first[0]; atom.kind == DimAtom::Kind::Opaque)
          opaqueDims_[atom.id] = length;
    if (graph_.isKernel && dim.kind != SliceDim::Kind::Full)
      subscript.parts.push_back(
          {begin, isTensor && kept < result->shape.size() ? dimension(result->shape[kept]) : length, extent()});
    ++kept;
  }
  Operand out;
  if (graph_.isKernel && !isReachable())
    return out;
  subscript.before = b_.nextStep();
  if (graph_.isKernel && sliced->isTensor() && dims.size() == sliced->shape.size())
    graph_.subscripts.push_back(std::move(subscript));
  const Type viewed = fieldOfElements.empty() ? expr.type : stripRef(base.type);
  if (!isWhole || !graph_.isKernel)
    of = b_.extend(of, std::move(window), viewed);
  if (!isWhole && graph_.isKernel)
    b_.emit(StepKind::View, &expr).place = of;
  for (int64_t number : fieldOfElements)
    of = b_.extend(of, {.kind = ProjectionKind::Field, .field = static_cast<uint32_t>(number)}, expr.type);
  out.place = of;
  return out;
}

//===-- loads and stores ------------------------------------------------------------------------------------------===//

Lowering::Operand Lowering::load(PlaceId place, Type type, const Expr& origin) {
  if (const auto slot = slotOf(place))
    return readSlots(*slot, type);
  Operand out;
  if (!leaves_.of(type) || type->isTensor()) {
    out.place = place;
    return out;
  }
  switch (type->kind) {
  case TypeKind::Scalar:
  case TypeKind::Enum: {
    if (!isReachable()) {
      out.value = b_.undefined(machineType(type));
      break;
    }
    Step& step = b_.emit(StepKind::Load, &origin);
    step.place = place;
    b_.addAccess(step, place, AccessMode::Read, &origin);
    out.value = b_.loaded(step, machineType(type));
    break;
  }
  case TypeKind::Ref: {  // kept in memory: whatever was put there
    Referents found;
    const LocalId root = graph_[place].root;
    if (const auto made = temporaries_.find(root); made != temporaries_.end())
      findReferents(*made->second, found);
    if (auto values = uses_.referencesTo.find(graph_[root].variable); values != uses_.referencesTo.end())
      for (const Expr* each : values->second)
        findReferents(*each, found);
    out.place = oneOf(std::move(found), stripRef(type), root);
    break;
  }
  default:
    for (uint32_t i = 0; i < type->elems.size(); ++i)
      out.parts.push_back(
          load(b_.extend(place, {.kind = ProjectionKind::Field, .field = i}, type->elems[i]), type->elems[i], origin));
    break;
  }
  return out;
}

void Lowering::storeScalar(PlaceId place, ValueId value, const Expr& origin, const Expr* written) {
  Step& step = b_.emit(StepKind::Store, &origin);
  step.place = place;
  step.value = value;
  b_.addUses(step, {&value, 1});
  b_.addAccess(step, place, AccessMode::Write, written);
}

void Lowering::store(PlaceId place, Type type, const Operand& operand, const Expr& origin, const Expr* written) {
  if (const auto slot = slotOf(place))
    return writeSlots(*slot, type, operand);
  if (type->kind == TypeKind::Scalar || type->kind == TypeKind::Enum)
    return storeScalar(place, operand.value == kNoValue ? b_.undefined(machineType(type)) : operand.value, origin,
                       written);
  if (operand.place != kNoPlace && type->kind != TypeKind::Ref && !leaves_.of(type)) {  // an array as a whole
    Step& load = b_.emit(StepKind::Load, &origin);
    load.place = operand.place;
    b_.addAccess(load, operand.place, AccessMode::Read, &origin);
    const ValueId whole = b_.loaded(load, {});
    return storeScalar(place, whole, origin, written);
  }
  for (uint32_t i = 0; i < type->elems.size() && type->kind != TypeKind::Ref; ++i)
    store(b_.extend(place, {.kind = ProjectionKind::Field, .field = i}, type->elems[i]), type->elems[i],
          i < operand.parts.size() ? operand.parts[i] : Operand(), origin, written);
}

}  // namespace vortex::lang::flow
