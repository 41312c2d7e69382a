// Places: elements of memory and parts of variables; windows on memory.
#include "irgen/emitter.h"

#include "ir/index_range.h"
#include "lang/sema/element.h"
#include "lang/sema/kernel/roots.h"

namespace vortex::irgen {

using lang::Expr;
using lang::ExprKind;
using mlir::Location;
using mlir::Value;
namespace arith = mlir::arith;

Place Emitter::place(const Expr& expr) {
  Place result;
  result.type = expr.type;
  if (parked_.count(&expr)) {
    result.value = eval(expr);
    return result;
  }
  switch (expr.kind) {
  case ExprKind::Var:
    result.variable = expr.variable;
    result.leafCount = leafTypes(expr.variable).size();
    return result;
  case ExprKind::Field: {
    Place base = place(*expr.args[0]);
    lang::Type aggregate = stripRef(expr.args[0]->type);
    uint32_t field = expr.ints[0], offset = types_.fieldOffset(aggregate, field);
    uint32_t count = types_.leafCount(aggregate->elems[field]);
    if (!base.variable && base.views.empty()) {  // of a temporary
      Flat whole = load(loc(expr), base);
      auto leaves = llvm::ArrayRef(whole.leaves).slice(offset, count);
      result.value.leaves.assign(leaves.begin(), leaves.end());
      return result;
    }
    base.type = expr.type;
    base.firstLeaf += offset;
    base.leafCount = count;
    return base;
  }
  case ExprKind::Deref: {
    if (isMemoryTensor(expr.type)) {
      result.value.leaves = evalViews(*expr.args[0]);
      return result;
    }
    Flat reference = eval(*expr.args[0]);
    if (reference.ref)
      return *reference.ref;
    result.value = reference;  // a borrowed parameter: the fields themselves
    if (expr.args[0]->kind == ExprKind::Var) {
      result.variable = expr.args[0]->variable;
      result.leafCount = reference.leaves.size();
    }
    return result;
  }
  case ExprKind::Element: return elementPlace(expr);
  default: result.value = eval(expr); return result;
  }
}

/// The planes of a tensor in memory. Of an array of tensors whose index only the running kernel knows, the planes of all of them.
Place Emitter::tensorPlace(const Expr& tensor) {
  const Expr* at = &tensor;
  bool isChosen = false;
  while (at->kind == ExprKind::Field || at->kind == ExprKind::Deref || at->kind == ExprKind::Element) {
    lang::Type base = stripRef(at->args[0]->type);
    isChosen |= at->kind == ExprKind::Element && base->kind == lang::TypeKind::Array && !isMemoryArray(base) &&
                at->args[1]->kind != ExprKind::Int;
    at = at->args[0];
  }
  Place result;
  if (isChosen && !parked_.count(&tensor)) {
    result = place(tensor);
    if (result.variable) {
      Flat whole = read(loc(tensor), result.variable);
      result.views.assign(whole.leaves.begin(), whole.leaves.end());
      result.variable = nullptr;
    } else if (!result.value.leaves.empty()) {  // of an array of references
      result.views.assign(result.value.leaves.begin(), result.value.leaves.end());
      result.leafCount = result.views.size();
    }
  } else {
    result.views = evalViews(tensor);
    result.leafCount = result.views.size();
  }
  return result;
}

Place Emitter::elementPlace(const Expr& expr) {
  const Expr& base = *expr.args[0];
  lang::Type type = stripRef(base.type);
  if (!type->isTensor())
    return arrayElement(expr);
  if (type->isValue)
    if (Flat tile = eval(base); llvm::isa<mlir::RankedTensorType>(tile.leaves[0].getType()))
      return tileElement(expr, tile);
  Place result = tensorPlace(base);
  result.type = expr.type;
  for (const Expr* index : llvm::ArrayRef(expr.args).drop_front())
    result.indices.push_back(evalIndex(*index));
  bool clamped = llvm::any_of(result.views, [&](Value view) { return cutViews_.contains(view); });
  result.guarded = context_.guardOf(expr) == lang::Guard::Guarded || clamped;
  result.unchecked = context_.guardOf(expr) == lang::Guard::Unchecked;
  result.isRaceFree = expr.isRaceFree && context_.hasOwnLaunch;
  restrictToDomain(expr, result);
  return result;
}

/// Of a tile: its elements are values. Threads read them from shared memory.
Place Emitter::tileElement(const Expr& expr, const Flat& tiles) {
  Place result;
  result.type = expr.type;
  for (const Expr* index : llvm::ArrayRef(expr.args).drop_front())
    result.indices.push_back(evalIndex(*index));
  Location at = loc(expr);
  lang::Type type = stripRef(expr.args[0]->type);
  for (Value leaf : tiles.leaves) {
    mlir::Type stored = llvm::cast<mlir::RankedTensorType>(leaf.getType()).getElementType();
    Value element = inThreads_ ? Value(b_.create<ir::LoadOp>(at, stored, spillTile(at, leaf), result.indices, Value(),
                                                             context_.guardOf(expr) == lang::Guard::Guarded))
                               : Value(b_.create<ir::ElementOp>(at, stored, leaf, result.indices));
    bool isWidened = !lang::isStructTensor(type) && isNarrowFloat(scalarOf(type)) && stored.isF32();
    result.value.leaves.push_back(isWidened ? math_.cast(at, element, lang::Scalar::F32, scalarOf(type)) : element);
  }
  return result;
}

/// The index; where the program is checked, one that is outside ends the launch.
Value Emitter::insideArray(const Expr& index, uint64_t count) {
  Location at = loc(index);
  Value value = evalIndex(index);
  if (context_.forChecks) {
    Value bound = b_.create<arith::ConstantIndexOp>(at, static_cast<int64_t>(count));
    Value inside = b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::ult, value, bound);
    emitAssert(at, inside, "E0601",
               {"index {} is outside the array, which has " + std::to_string(count) + " elements", {value}, {false}});
  }
  return value;
}

Place Emitter::arrayElement(const Expr& expr) {
  const Expr& base = *expr.args[0];
  lang::Type type = stripRef(base.type);
  Place result;
  result.type = expr.type;
  if (isMemoryArray(type)) {
    result.value = evalArrayWindow(expr);
    return result;
  }
  VORTEX_CHECK(type->kind == lang::TypeKind::Array, "element of type kind %d", int(type->kind));
  Place whole = place(base);
  uint32_t width = types_.leafCount(type->elem);
  const Expr& index = *expr.args[1];
  bool isConstant =
      index.kind == ExprKind::Int && index.intValue >= 0 && index.intValue < static_cast<__int128>(type->count);
  bool isTemporary = !whole.variable && whole.views.empty();
  if (isConstant && isTemporary) {
    auto leaves = llvm::ArrayRef(whole.value.leaves).slice(static_cast<size_t>(index.intValue) * width, width);
    result.value.leaves.assign(leaves.begin(), leaves.end());
    return result;
  }
  if (isTemporary) {  // give it a name
    const Variable* temporary = facts_.newVariable("array", type, base.uniformity);
    declare(temporary);
    assign(loc(expr), temporary, load(loc(expr), whole));
    whole = Place();
    whole.variable = temporary;
  }
  whole.type = expr.type;
  whole.leafCount = width;
  if (isConstant)
    whole.firstLeaf += static_cast<uint32_t>(index.intValue) * width;
  else
    whole.choices.push_back({insideArray(index, type->count), type->count, width});
  return whole;
}

/// One tensor of an array of tensors. An index outside names the last one, as its elements' guards know nothing of the array.
Flat Emitter::evalArrayWindow(const Expr& expr) {
  Location at = loc(expr);
  lang::Type array = stripRef(expr.args[0]->type);
  Flat all = load(at, place(*expr.args[0])), windows;
  const bool isConstant = expr.args[1]->kind == ExprKind::Int;
  Value index = isConstant ? evalIndex(*expr.args[1]) : insideArray(*expr.args[1], array->count);
  if (!isConstant)
    index = b_.create<arith::MinUIOp>(at, index, math_.index(at, static_cast<int64_t>(array->count) - 1));
  for (Value source : all.leaves) {
    ir::ViewType type = types_.view(array->elem, llvm::cast<ir::ViewType>(source.getType()).getElementType());
    llvm::SmallVector<Value> offsets(type.getRank() + 1, math_.index(at, 0));
    offsets[0] = index;
    windows.leaves.push_back(
        b_.create<ir::SubviewOp>(at, type, source, offsets, mlir::ValueRange(), llvm::ArrayRef<int64_t>{0}));
  }
  return windows;
}

llvm::SmallVector<Value, 1> Emitter::evalViews(const Expr& expr) {
  Flat flat = eval(expr);
  for (Value leaf : flat.leaves)
    VORTEX_CHECK(llvm::isa<ir::ViewType>(leaf.getType()), "a tensor in memory has no view");
  return flat.leaves;
}

Value Emitter::evalView(const Expr& expr) {
  llvm::SmallVector<Value, 1> views = evalViews(expr);
  VORTEX_CHECK(views.size() == 1, "a tensor of scalars has %zu planes", views.size());
  return views[0];
}

/// Threads outside the domain do not store to global memory. They load what lies inside, as they may do so for their block. Subscripts that
/// are exactly the thread's position need no bounds check of their own: those inside the domain along their axes are inside the tensor.
void Emitter::restrictToDomain(const Expr& element, Place& place) {
  lang::Type base = stripRef(element.args[0]->type);
  if (context_.domain.empty() || !inThreads_ || base->space != lang::Space::Global)
    return;
  place.mask = insideDomain();
  bool clamped = llvm::any_of(place.views, [&](Value view) { return cutViews_.contains(view); });
  if (place.unchecked)
    place.loadMask = place.mask;  // what was promised holds for the threads of the domain
  if (!place.guarded || clamped)
    return;
  unsigned axes = 0;
  place.guarded = llvm::any_of(llvm::enumerate(base->shape), [&](auto indexed) {
    const Expr* index = lang::definingValue(element.args[indexed.index() + 1], context_.roots);
    if (index->kind != ExprKind::Builtin || index->builtin != lang::Builtin::ThreadGlobalId)
      return true;
    size_t axis = index->ints.empty() ? 0 : index->ints[0];
    if (axis >= context_.domain.size() || !(indexed.value() == context_.domain[axis]))
      return true;
    axes |= 1u << axis;
    return false;
  });
  if (!place.guarded)
    place.loadMask = insideDomain(axes);
}

Value Emitter::both(Location loc, Value a, Value b) {
  return !a || !b ? (a ? a : b) : Value(b_.create<arith::AndIOp>(loc, a, b));
}

Value Emitter::loadElement(Location loc, const Place& place, Value view, Value chosen) {
  mlir::Type type = llvm::cast<ir::ViewType>(view.getType()).getElementType();
  auto load = b_.create<ir::LoadOp>(loc, type, view, indicesIn(loc, view, place.indices),
                                    both(loc, place.loadMask, chosen), place.guarded);
  noteUnchecked(load, place.unchecked);
  if (context_.forChecks && place.leafCount == 1)  // of structs those fields count that are used
    load->setAttr("vx.watched", b_.getUnitAttr());
  load.setRaceFree(place.isRaceFree && isReachedByOthers(view));
  return load;
}

/// Memory that is not of one thread.
bool Emitter::isReachedByOthers(Value view) {
  const ir::Space space = llvm::cast<ir::ViewType>(view.getType()).getSpace();
  return space == ir::Space::Global || space == ir::Space::Shared;
}

/// For the report: the source gave up the guard here.
void Emitter::noteUnchecked(mlir::Operation* access, bool unchecked) {
  if (unchecked)
    access->setAttr("vx.unchecked", b_.getUnitAttr());
}

/// Likewise for a slice of the source, whose tile access is told apart from those that a schedule makes.
void Emitter::noteSlice(mlir::Operation* access, const Expr& slice) {
  noteUnchecked(access, context_.guardOf(slice) == lang::Guard::Unchecked);
  if (context_.guardOf(slice) == lang::Guard::Guarded)
    access->setAttr("vx.guarded", b_.getUnitAttr());
}

const void* Emitter::rootOf(Value view) const {
  while (mlir::Operation* definition = view.getDefiningOp()) {
    if (auto subview = llvm::dyn_cast<ir::SubviewOp>(definition))
      view = subview.getSource();
    else
      return llvm::isa<ir::AllocOp>(definition) ? view.getAsOpaquePointer() : nullptr;
  }
  return view.getAsOpaquePointer();
}

void Emitter::noteWrite(Value view) {
  if (region_ && inThreads_)
    region_->written.insert(rootOf(view));
}

//===-- slices ----------------------------------------------------------------------------------------------------===//

Emitter::SliceWindow Emitter::window(const Expr& slice) {
  SliceWindow result;
  Location at = loc(slice);
  lang::Type base = stripRef(slice.args[0]->type);
  size_t kept = 0;
  for (auto [dim, part] : llvm::enumerate(slice.slices)) {
    Value zero = math_.index(at, 0);
    using Kind = lang::SliceDim::Kind;
    if (part.kind == Kind::Index) {
      result.offsets.push_back(evalIndex(*part.begin));
      result.dropped.push_back(dim);
      result.staticSizes.push_back(1);
      result.sizes.push_back(math_.index(at, 1));
      continue;
    }
    Value begin = part.kind == Kind::Range && part.begin ? evalIndex(*part.begin) : zero;
    result.offsets.push_back(begin);
    const lang::DimExpr& extent = slice.type->isTensor() ? slice.type->shape[kept] : stripRef(slice.type)->shape[kept];
    ++kept;
    int64_t known = types_.extent(extent);
    result.staticSizes.push_back(known);
    Value size;
    if (!mlir::ShapedType::isDynamic(known))
      size = math_.index(at, known);
    else if (!types_.fix(extent).hasOpaque())
      size = dimValue(at, extent);
    else if (part.kind == Kind::Full)
      size = dimValue(at, base->shape[dim]);
    else {
      Value end = part.end ? evalIndex(*part.end) : dimValue(at, base->shape[dim]);
      size = part.endIsLength ? end : Value(b_.create<arith::SubIOp>(at, end, begin));
      size = b_.create<arith::MaxSIOp>(at, size, zero);
    }
    if (types_.fix(extent).hasOpaque())
      extents_[types_.fix(extent)] = size;
    result.sizes.push_back(size);
  }
  return result;
}

/// A window on memory. When it is not proven to lie inside, it is cut to what does, and accesses through it are checked.
Flat Emitter::evalSlice(const Expr& slice) {
  const Expr& base = *slice.args[0];
  llvm::SmallVector<Value, 1> sources = evalViews(base);
  if (lang::isFieldOfElements(slice)) {
    lang::Type element = stripRef(base.type)->elem;
    uint32_t field = slice.ints[0];
    auto planes = llvm::ArrayRef<Value>(sources).slice(lang::scalarsBefore(element, field),
                                                       lang::scalarCount(lang::partOf(element, field)));
    sources = llvm::SmallVector<Value, 1>(planes.begin(), planes.end());
  }
  Flat result;
  bool isIdentity =
      llvm::all_of(slice.slices, [](const lang::SliceDim& part) { return part.kind == lang::SliceDim::Kind::Full; });
  if (isIdentity) {
    result.leaves = sources;
    return result;
  }
  SliceWindow parts = window(slice);
  for (Value source : sources)
    result.leaves.push_back(windowOn(slice, source, parts));
  return result;
}

Value Emitter::windowOn(const Expr& slice, Value source, SliceWindow parts) {
  Location at = loc(slice);
  auto sourceType = llvm::cast<ir::ViewType>(source.getType());
  bool clamp = context_.guardOf(slice) == lang::Guard::Guarded || cutViews_.contains(source);
  Cut cut;
  llvm::SmallVector<Value> asked = parts.offsets, sizes;
  llvm::SmallVector<int64_t> shape;
  parts.offsets = indicesIn(at, source, parts.offsets);
  for (auto [dim, offset, size, known] : llvm::enumerate(parts.offsets, parts.sizes, parts.staticSizes)) {
    bool full = slice.slices[dim].kind == lang::SliceDim::Kind::Full;
    bool dropped = slice.slices[dim].kind == lang::SliceDim::Kind::Index;
    int64_t extentHere = full && !sourceType.isDynamic(dim) ? sourceType.getShape()[dim] : known;
    Value missing, asks = size;
    Value extent = sourceType.isDynamic(dim) && clamp ? Value(b_.create<ir::DimOp>(at, source, dim))
                                                      : math_.index(at, clamp ? sourceType.getShape()[dim] : 0);
    if (clamp && full) {  // all that there is
      offset = asked[dim];
      if (auto found = cutViews_.find(source); found != cutViews_.end())
        missing = found->second.before[dim];
      size = extent;
      extentHere = sourceType.getShape()[dim];
    } else if (clamp) {
      if (!dropped)
        missing = cutStart(at, offset, size);
      // A dropped dimension keeps its extent of one: the offset moves inside, and the window becomes empty in another dimension below.
      offset = b_.create<arith::MinUIOp>(at, offset, extent);
      Value room = b_.create<arith::SubIOp>(at, extent, offset);
      if (!dropped) {
        size = b_.create<arith::MinUIOp>(at, size, room);
        extentHere = mlir::ShapedType::kDynamic;
      }
    }
    if (llvm::is_contained(parts.dropped, static_cast<int64_t>(dim)))
      continue;
    shape.push_back(extentHere);
    cut.before.push_back(missing);
    cut.extents.push_back(asks);
    if (mlir::ShapedType::isDynamic(extentHere))
      sizes.push_back(size);
  }
  if (clamp && !parts.dropped.empty() && !shape.empty())
    clampDropped(slice, source, parts, shape, sizes);
  auto type = ir::ViewType::get(b_.getContext(), shape, sourceType.getElementType(), sourceType.getSpace(),
                                sourceType.getLayout());
  Value view = b_.create<ir::SubviewOp>(at, type, source, parts.offsets, sizes, parts.dropped);
  if (clamp)
    cutViews_[view] = std::move(cut);
  return view;
}

/// What lies before the tensor is cut off; how much of the window that is, null: nothing.
Value Emitter::cutStart(Location loc, Value& offset, Value& size) {
  auto argument = llvm::dyn_cast<mlir::BlockArgument>(offset);
  const bool isNumberOfTheLaunch = argument && llvm::isa<ir::KernelOp>(argument.getOwner()->getParentOp());
  if (isNumberOfTheLaunch || ir::isNotNegative(offset))
    return {};  // a `usize` that a launch gives is a number, however large
  Value begin = b_.create<arith::MaxSIOp>(loc, offset, math_.index(loc, 0));
  Value missing = b_.create<arith::SubIOp>(loc, begin, offset);
  Value cut = b_.create<arith::MinUIOp>(loc, missing, size);
  size = b_.create<arith::SubIOp>(loc, size, cut);
  offset = begin;
  return missing;
}

/// Indices of the window that was asked for become those of what there is of it: negative ones, so far outside, before its start.
llvm::SmallVector<Value> Emitter::indicesIn(Location loc, Value view, llvm::ArrayRef<Value> indices) {
  llvm::SmallVector<Value> result(indices);
  if (auto found = cutViews_.find(view); found != cutViews_.end())
    for (auto [index, missing] : llvm::zip(result, found->second.before))
      if (missing)
        index = b_.create<arith::SubIOp>(loc, index, missing);
  return result;
}

/// Of the window that was asked for.
Value Emitter::extentOf(Location loc, Value view, unsigned dim) {
  auto found = cutViews_.find(view);
  return found != cutViews_.end() ? found->second.extents[dim] : Value(b_.create<ir::DimOp>(loc, view, dim));
}

/// With an index of a dropped dimension outside, nothing of the window is inside: its first extent becomes zero.
void Emitter::clampDropped(const Expr& slice, Value source, SliceWindow& parts, llvm::SmallVectorImpl<int64_t>& shape,
                           llvm::SmallVectorImpl<Value>& sizes) {
  Location at = loc(slice);
  auto sourceType = llvm::cast<ir::ViewType>(source.getType());
  Value inside;
  for (int64_t dim : parts.dropped) {
    Value extent = sourceType.isDynamic(dim) ? Value(b_.create<ir::DimOp>(at, source, dim))
                                             : math_.index(at, sourceType.getShape()[dim]);
    Value here = b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::ult, parts.offsets[dim], extent);
    parts.offsets[dim] = b_.create<arith::SelectOp>(at, here, parts.offsets[dim], math_.index(at, 0));
    inside = inside ? Value(b_.create<arith::AndIOp>(at, inside, here)) : here;
  }
  Value first = mlir::ShapedType::isDynamic(shape[0]) ? sizes[0] : math_.index(at, shape[0]);
  Value size = b_.create<arith::SelectOp>(at, inside, first, math_.index(at, 0));
  if (mlir::ShapedType::isDynamic(shape[0]))
    sizes[0] = size;
  else
    sizes.insert(sizes.begin(), size);
  shape[0] = mlir::ShapedType::kDynamic;
}

}  // namespace vortex::irgen
