// Indexing and slicing.
#include "lang/sema/check/checker.h"

#include "base/text.h"

#include <utility>

namespace vortex::lang {

// Plain numbers are checked as i64 so that a negative one gets the error about indices, not about usize.
Expr* Checker::index(const syn::Expr* expr, const DimExpr* extent) {
  Expr* position = value(expr, isUntyped(expr) ? types.scalar(Scalar::I64) : nullptr);
  return asIndex(position, extent);
}

Expr* Checker::asIndex(Expr* position, const DimExpr* extent) {
  if (isError(position))
    return position;
  if (!grants(position->type, {BuiltinTrait::Integer}, position->range, "an index"))
    return errorExpr(position->range);
  if (position->type->kind != TypeKind::Scalar || !isInteger(position->type->scalar)) {
    error("E0313", position->range, "an index is an integer, not `" + text(position->type) + "`");
    return errorExpr(position->range);
  }
  if (position->kind == ExprKind::Int) {
    if (position->intValue < 0) {
      error("E0314", position->range, "an index cannot be negative")
          .help("indices count from 0; the last element is at `N - 1`");
      return errorExpr(position->range);
    }
    if (auto limit = extent ? extent->asConstant() : std::nullopt; limit && position->intValue >= *limit) {
      error("E0314", position->range,
            base::concat("index ", static_cast<long long>(position->intValue), " is outside: the extent is ", *limit));
      return errorExpr(position->range);
    }
    position->type = usize();
    return position;
  }
  return position->type == usize() ? position : make(ExprKind::Cast, usize(), position->range, {position});
}

Expr* Checker::checkIndex(const syn::IndexExpr* expr) {
  const bool isWritten = std::exchange(isStoreTarget_, false);
  Expr* base = deref(check(expr->base));
  if (!isError(base) && !isWritten &&
      !spaceGrants(base->type, BuiltinTrait::Readable, expr->range, "reading an element"))
    return errorExpr(expr->range);
  if (isError(base)) {
    for (const syn::Expr* index : expr->indices)
      if (!index->is<syn::FullSliceExpr>() && !index->is<syn::RangeExpr>())
        check(index);
    return errorExpr(expr->range);
  }
  switch (base->type->kind) {
  case TypeKind::Tensor: return checkTensorIndex(expr, base);
  case TypeKind::Vec:
  case TypeKind::Array: return checkVecIndex(expr, base);
  default: error("E0313", expr->range, "`" + text(base->type) + "` cannot be indexed"); return errorExpr(expr->range);
  }
}

Expr* Checker::checkVecIndex(const syn::IndexExpr* expr, Expr* base) {
  if (expr->indices.size() != 1) {
    error("E0313", expr->range, base::concat("`", text(base->type), "` takes one index, not ", expr->indices.size()));
    return errorExpr(expr->range);
  }
  const syn::Expr* index = expr->indices[0];
  const bool isArray = base->type->kind == TypeKind::Array;
  if (index->is<syn::RangeExpr>() || index->is<syn::FullSliceExpr>()) {
    if (isArray)
      return arraySlice(expr, base);
    SliceDim slice;
    DimExpr ignored;
    if (!sliceDim(index, nullptr, slice, ignored))
      return errorExpr(expr->range);
    Expr* out = make(ExprKind::Slice, base->type, expr->range, {base});
    out->slices = {slice};
    return out;
  }
  const DimExpr count = DimExpr::constant(static_cast<int64_t>(base->type->count));
  Expr* position = this->index(index, isArray ? &count : nullptr);
  if (isError(position))
    return errorExpr(expr->range);
  if (base->kind == ExprKind::MakeArray && position->kind == ExprKind::Int)  // x.shape[0]
    return base->args[static_cast<size_t>(position->intValue)];
  Expr* out = make(ExprKind::Element, base->type->elem, expr->range, {base, position});
  if (uncheckedBounds)
    out->guard = Guard::Unchecked;
  return out;
}

/// `a[1..3]`, `a[i..+2]`: an array of these elements.
Expr* Checker::arraySlice(const syn::IndexExpr* expr, Expr* base) {
  const auto count = static_cast<int64_t>(base->type->count);
  const DimExpr extent = DimExpr::constant(count);
  SliceDim slice;
  DimExpr length;
  if (!sliceDim(expr->indices[0], &extent, slice, length))
    return errorExpr(expr->range);
  const auto known = length.asConstant();
  if (!known) {
    error("E0310", expr->indices[0]->range, "the length of an array's slice must be known at compile time")
        .primary("this is known only at run time")
        .label(expr->base->range, "`" + text(base->type) + "`")
        .help("write `a[i..+3]` with a constant, or keep the values in a `Vec` or tensor");
    return errorExpr(expr->range);
  }
  const Expr* begin = slice.begin;
  const auto first = !begin ? std::optional<int64_t>(0) : dimOf(begin).asConstant();
  if (*known > count || (first && *first + *known > count)) {
    error("E0314", expr->indices[0]->range,
          base::concat("the slice ends at ", first ? *first + *known : *known, ": the array has ", count, " elements"))
        .label(expr->base->range, "`" + text(base->type) + "`");
    return errorExpr(expr->range);
  }
  std::vector<Expr*> before, elems;
  Expr* at = slice.begin && slice.begin->kind != ExprKind::Int && slice.begin->kind != ExprKind::Var
                 ? temporary(slice.begin, before)
                 : slice.begin;
  Expr* place = base->kind == ExprKind::Var || base->kind == ExprKind::Field || base->kind == ExprKind::Deref
                    ? base
                    : temporary(base, before);
  for (int64_t i = 0; i < *known; ++i) {
    Expr* position = makeInt(i + first.value_or(0), usize(), expr->range);
    if (!first) {
      position =
          make(ExprKind::Binary, usize(), expr->range, {repeatedPlace(at, before), makeInt(i, usize(), expr->range)});
      position->binaryOp = BinaryOp::Add;
    }
    elems.push_back(make(ExprKind::Element, base->type->elem, expr->range, {repeatedPlace(place, before), position}));
  }
  Type type = types.array(base->type->elem, static_cast<uint64_t>(*known));
  Expr* out = make(ExprKind::MakeArray, type, expr->range, std::move(elems));
  if (before.empty())
    return out;
  before.push_back(out);
  return make(ExprKind::Block, type, expr->range, std::move(before));
}

bool Checker::sliceDim(const syn::Expr* expr, const DimExpr* extent, SliceDim& out, DimExpr& length) {
  if (expr->is<syn::FullSliceExpr>()) {
    out.kind = SliceDim::Kind::Full;
    length = extent ? *extent : DimExpr::opaque(session.newOpaque());
    return true;
  }
  auto* range = expr->tryAs<syn::RangeExpr>();
  if (!range) {
    out.kind = SliceDim::Kind::Index;
    out.begin = index(expr, extent);
    return !isError(out.begin);
  }
  out.kind = SliceDim::Kind::Range;
  out.endIsLength = range->endIsLength;
  if (range->begin) {
    out.begin = index(range->begin, nullptr);
    if (isError(out.begin))
      return false;
  }
  if (range->end) {
    out.end = index(range->end, nullptr);
    if (isError(out.end))
      return false;
  }
  const DimExpr begin = out.begin ? dimOf(out.begin) : DimExpr::constant(0);
  if (out.endIsLength && out.end)
    length = dimOf(out.end);
  else if (out.end || extent)
    length = DimExpr::sub(out.end ? dimOf(out.end) : *extent, begin);
  else
    length = DimExpr::opaque(session.newOpaque());
  if (auto constant = length.asConstant(); constant && *constant < 0) {
    error("E0314", expr->range, base::concat("this range ends before it begins: its length is ", *constant));
    return false;
  }
  if (mentionsMutable(length))  // the variable may change before the next slice
    length = DimExpr::opaque(session.newOpaque());
  return true;
}

bool Checker::mentionsMutable(const DimExpr& dim) const {
  for (const auto& [monomial, coefficient] : dim.terms())
    for (const DimAtom& atom : monomial) {
      if (atom.kind == DimAtom::Kind::Opaque && mutableOpaques.count(atom.id))
        return true;
      for (const DimExpr& operand : atom.operands)
        if (mentionsMutable(operand))
          return true;
    }
  return false;
}

Expr* Checker::checkTensorIndex(const syn::IndexExpr* expr, Expr* base) {
  Type type = base->type;
  if (base->kind == ExprKind::Var && !base->variable->fragment.empty()) {
    error("E0466", expr->range,
          base::concat("`", base->variable->name, "` is spread over the threads and has no elements to index"))
        .label(base->variable->range,
               base::concat("declared as one thread's part of a `", shapeText(type), "` product"))
        .help(base::concat("declare it `", text(types.tensor(type->elem, type->shape, Space::Local)), "` to index it"));
    return errorExpr(expr->range);
  }
  if (expr->indices.size() > type->rank() || expr->indices.empty()) {
    error("E0313", expr->range,
          base::concat("this tensor has rank ", type->rank(), ", but ", expr->indices.size(),
                       expr->indices.size() == 1 ? " index is" : " indices are", " given"))
        .label(expr->base->range, "`" + text(type) + "`");
    return errorExpr(expr->range);
  }
  std::vector<SliceDim> slices(type->rank());
  std::vector<DimExpr> shape;
  bool allIndices = expr->indices.size() == type->rank(), ok = true;
  for (size_t i = 0; i < type->rank(); ++i) {
    DimExpr length = type->shape[i];
    if (i < expr->indices.size())
      ok = sliceDim(expr->indices[i], &type->shape[i], slices[i], length) && ok;
    if (slices[i].kind != SliceDim::Kind::Index) {
      allIndices = false;
      shape.push_back(length);
    }
  }
  if (!ok)
    return errorExpr(expr->range);
  if (!allIndices) {
    Expr* out = make(ExprKind::Slice,
                     type->isValue ? types.tensorValue(type->elem, shape)
                                   : types.tensor(type->elem, shape, type->space, type->layout, type->param),
                     expr->range, {base});
    out->slices = std::move(slices);
    if (uncheckedBounds)
      out->guard = Guard::Unchecked;
    return out;
  }
  if (!inKernel() && instance) {
    error("E0404", expr->range, "host code cannot access an element of device memory")
        .primary("this tensor lives on the device")
        .help("read it back first: `let v = " + std::string(session.sources.text(expr->base->range)) + ".to_host()`");
    return errorExpr(expr->range);
  }
  Expr* out = make(ExprKind::Element, type->elem, expr->range, {base});
  for (const SliceDim& slice : slices)
    out->args.push_back(slice.begin);
  if (uncheckedBounds)
    out->guard = Guard::Unchecked;
  return out;
}

}  // namespace vortex::lang
