// Places: elements of memory and parts of variables; windows on memory.
#include "irgen/emitter.h"

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
    if (!base.variable || base.arrayIndex) {  // of a temporary
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
      result.value = evalView(*expr.args[0]);
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

Place Emitter::elementPlace(const Expr& expr) {
  const Expr& base = *expr.args[0];
  lang::Type type = stripRef(base.type);
  Location at = loc(expr);
  Place result;
  result.type = expr.type;
  if (type->isTensor()) {
    Value view = type->isValue ? eval(base).leaves[0] : evalView(base);
    for (const Expr* index : llvm::ArrayRef(expr.args).drop_front())
      result.indices.push_back(evalIndex(*index));
    if (auto tile = llvm::dyn_cast<mlir::RankedTensorType>(view.getType())) {
      if (inThreads_) {
        Value element = b_.create<ir::LoadOp>(at, tile.getElementType(), spillTile(at, view), result.indices, Value(),
                                              expr.guard == lang::Guard::Guarded);
        result.value = isNarrowFloat(scalarOf(type)) && tile.getElementType().isF32()
                           ? math_.cast(at, element, lang::Scalar::F32, scalarOf(type))
                           : element;
        return result;
      }
      Value element = b_.create<ir::ElementOp>(at, tile.getElementType(), view, result.indices);
      result.value = isNarrowFloat(scalarOf(type)) && tile.getElementType().isF32()
                         ? math_.cast(at, element, lang::Scalar::F32, scalarOf(type))
                         : element;
      return result;
    }
    result.view = view;
    result.guarded = expr.guard == lang::Guard::Guarded || clampedViews_.contains(view);
    result.unchecked = expr.guard == lang::Guard::Unchecked;
    restrictToDomain(expr, result);
    return result;
  }
  if (isMemoryArray(type)) {
    result.value = evalArrayWindow(expr);
    return result;
  }
  VORTEX_CHECK(type->kind == lang::TypeKind::Array, "element of type kind %d", int(type->kind));
  Place whole = place(base);
  uint32_t width = types_.leafCount(type->elem);
  const Expr& index = *expr.args[1];
  if (index.kind == ExprKind::Int && index.intValue >= 0 && index.intValue < static_cast<__int128>(type->count)) {
    whole.type = expr.type;
    if (whole.variable) {
      whole.firstLeaf += static_cast<uint32_t>(index.intValue) * width;
      whole.leafCount = width;
      return whole;
    }
    auto leaves = llvm::ArrayRef(whole.value.leaves).slice(static_cast<size_t>(index.intValue) * width, width);
    result.value.leaves.assign(leaves.begin(), leaves.end());
    return result;
  }
  if (!whole.variable) {  // give the temporary a name
    const Variable* temporary = facts_.newVariable("array", type, base.uniformity);
    declare(temporary);
    assign(at, temporary, load(at, whole));
    whole.variable = temporary;
    whole.firstLeaf = 0;
  }
  whole.type = expr.type;
  whole.leafCount = width;
  whole.arrayIndex = evalIndex(index);
  whole.arrayCount = type->count;
  return whole;
}

/// One tensor of an array of tensors. An index outside names the last one, as its elements' guards know nothing of the array.
Value Emitter::evalArrayWindow(const Expr& expr) {
  Location at = loc(expr);
  lang::Type array = stripRef(expr.args[0]->type);
  Value all = load(at, place(*expr.args[0])).leaves[0];
  Value index = evalIndex(*expr.args[1]);
  if (expr.args[1]->kind != ExprKind::Int)
    index = b_.create<arith::MinUIOp>(at, index, math_.index(at, static_cast<int64_t>(array->count) - 1));
  ir::ViewType type = types_.view(array->elem);
  llvm::SmallVector<Value> offsets(type.getRank() + 1, math_.index(at, 0));
  offsets[0] = index;
  return b_.create<ir::SubviewOp>(at, type, all, offsets, mlir::ValueRange(), llvm::ArrayRef<int64_t>{0});
}

Value Emitter::evalView(const Expr& expr) {
  Flat flat = eval(expr);
  VORTEX_CHECK(flat.leaves.size() == 1 && llvm::isa<ir::ViewType>(flat.leaves[0].getType()),
               "a tensor in memory has no view");
  return flat.leaves[0];
}

/// Threads outside the domain neither load nor store global memory. Inside, subscripts that are exactly the thread's position need no
/// bounds check of their own.
void Emitter::restrictToDomain(const Expr& element, Place& place) {
  lang::Type base = stripRef(element.args[0]->type);
  if (context_.domain.empty() || !inThreads_ || base->space != lang::Space::Global)
    return;
  place.mask = insideDomain();
  if (!place.guarded || clampedViews_.contains(place.view))
    return;
  place.guarded = llvm::any_of(llvm::enumerate(base->shape), [&](auto indexed) {
    const Expr* index = lang::stripIntegerCasts(element.args[indexed.index() + 1], context_.roots);
    if (index->kind != ExprKind::Builtin || index->builtin != lang::Builtin::ThreadGlobalId)
      return true;
    size_t axis = index->ints.empty() ? 0 : index->ints[0];
    return axis >= context_.domain.size() || !(indexed.value() == context_.domain[axis]);
  });
}

Value Emitter::loadElement(Location loc, const Place& place) {
  mlir::Type type = llvm::cast<ir::ViewType>(place.view.getType()).getElementType();
  auto load = b_.create<ir::LoadOp>(loc, type, place.view, place.indices, place.mask, place.guarded);
  noteUnchecked(load, place.unchecked);
  return load;
}

/// For the report: the source gave up the guard here.
void Emitter::noteUnchecked(mlir::Operation* access, bool unchecked) {
  if (unchecked)
    access->setAttr("vx.unchecked", b_.getUnitAttr());
}

/// Likewise for a slice of the source, whose tile access is told apart from those that a schedule makes.
void Emitter::noteSlice(mlir::Operation* access, const Expr& slice) {
  noteUnchecked(access, slice.guard == lang::Guard::Unchecked);
  if (slice.guard == lang::Guard::Guarded)
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
    }
    if (types_.fix(extent).hasOpaque())
      extents_[types_.fix(extent)] = size;
    result.sizes.push_back(size);
  }
  return result;
}

/// A window on memory. When it is not proven to lie inside, it is cut to what does, and accesses through it are checked.
Value Emitter::evalSlice(const Expr& slice) {
  Location at = loc(slice);
  Value source = evalView(*slice.args[0]);
  auto sourceType = llvm::cast<ir::ViewType>(source.getType());
  SliceWindow parts = window(slice);
  bool isIdentity =
      llvm::all_of(slice.slices, [](const lang::SliceDim& part) { return part.kind == lang::SliceDim::Kind::Full; });
  if (isIdentity)
    return source;
  bool clamp = slice.guard == lang::Guard::Guarded || clampedViews_.contains(source);
  llvm::SmallVector<Value> sizes;
  llvm::SmallVector<int64_t> shape;
  for (auto [dim, offset, size, known] : llvm::enumerate(parts.offsets, parts.sizes, parts.staticSizes)) {
    bool full = slice.slices[dim].kind == lang::SliceDim::Kind::Full;
    int64_t extentHere = full && !sourceType.isDynamic(dim) ? sourceType.getShape()[dim] : known;
    if (clamp && !full) {
      Value extent = sourceType.isDynamic(dim) ? Value(b_.create<ir::DimOp>(at, source, dim))
                                               : math_.index(at, sourceType.getShape()[dim]);
      bool dropped = slice.slices[dim].kind == lang::SliceDim::Kind::Index;
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
    if (mlir::ShapedType::isDynamic(extentHere))
      sizes.push_back(size);
  }
  if (clamp && !parts.dropped.empty() && !shape.empty())
    clampDropped(slice, source, parts, shape, sizes);
  auto type = ir::ViewType::get(b_.getContext(), shape, sourceType.getElementType(), sourceType.getSpace(),
                                sourceType.getLayout());
  Value view = b_.create<ir::SubviewOp>(at, type, source, parts.offsets, sizes, parts.dropped);
  if (clamp)
    clampedViews_.insert(view);
  return view;
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
