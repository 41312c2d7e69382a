// Indexing and slicing.
#include "lang/sema/check/exprs/index.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/fields.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

#include <algorithm>
#include <utility>

namespace vortex::lang {

static Expr* checkVecIndex(BodyState& body, const syn::IndexExpr* expr, Expr* base);
static Expr* arraySlice(BodyState& body, const syn::IndexExpr* expr, Expr* base);
static bool sliceDim(BodyState& body, const syn::Expr* expr, const DimExpr* extent, SliceDim& out, DimExpr& length);
static bool mentionsMutable(const BodyState& body, const DimExpr& dim);
static Expr* checkTensorIndex(BodyState& body, const syn::IndexExpr* expr, Expr* base);

// Plain numbers are checked as i64 so that a negative one gets the error about indices or extents, not about usize.
static Expr* wholeNumber(BodyState& body, const syn::Expr* expr) {
  return value(body, expr, isUntyped(body, expr) ? body.types.scalar(Scalar::I64) : nullptr);
}

Expr* index(BodyState& body, const syn::Expr* expr, const DimExpr* extent) {
  return asIndex(body, wholeNumber(body, expr), extent);
}

Expr* asIndex(BodyState& body, Expr* position, const DimExpr* extent) {
  if (isError(position))
    return position;
  if (!grants(body, position->type, {BuiltinTrait::Integer}, position->range, "an index"))
    return errorExpr(body, position->range);
  if (position->type->kind != TypeKind::Scalar || !isInteger(position->type->scalar)) {
    auto builder =
        error(body, "E0313", position->range,
              position->kind == ExprKind::String ? "a whole number is expected, not a text"
                                                 : "an index is an integer, not `" + text(body, position->type) + "`");
    if (stripRef(position->type)->isTensor())
      builder.help("elements are read one by one: `for j in 0..M { out[j] = x[i[j]] }`");
    builder.emit();
    return errorExpr(body, position->range);
  }
  if (position->kind == ExprKind::Int) {
    if (position->intValue < 0) {
      error(body, "E0314", position->range, "an index cannot be negative")
          .help("indices count from 0; the last element is at `N - 1`");
      return errorExpr(body, position->range);
    }
    if (auto limit = extent ? extent->asConstant() : std::nullopt; limit && position->intValue >= *limit) {
      error(body, "E0314", position->range,
            base::concat("index ", static_cast<long long>(position->intValue), " is outside: the extent is ", *limit));
      return errorExpr(body, position->range);
    }
    position->type = usize(body);
    return position;
  }
  return position->type == usize(body) ? position
                                       : make(body, ExprKind::Cast, usize(body), position->range, {position});
}

Expr* checkIndex(BodyState& body, const syn::IndexExpr* expr) {
  const bool isWritten = std::exchange(body.isStoreTarget, false);
  Expr* base = deref(body, check(body, expr->base));
  if (!isError(base) && !isWritten &&
      !spaceGrants(body, base->type, BuiltinTrait::Readable, expr->range, "reading an element"))
    return errorExpr(body, expr->range);
  if (isError(base)) {
    for (const syn::Expr* index : expr->indices)
      if (!index->is<syn::FullSliceExpr>() && !index->is<syn::RangeExpr>())
        check(body, index);
    return errorExpr(body, expr->range);
  }
  switch (base->type->kind) {
  case TypeKind::Tensor: return checkTensorIndex(body, expr, base);
  case TypeKind::Vec:
  case TypeKind::Array: return checkVecIndex(body, expr, base);
  default:
    auto builder = error(body, "E0313", expr->range, "`" + text(body, base->type) + "` cannot be indexed");
    if (base->type->kind == TypeKind::String)
      builder.help("a text is one value; `read_file` gives the bytes of a file as a list");
    return errorExpr(body, expr->range);
  }
}

static Expr* checkVecIndex(BodyState& body, const syn::IndexExpr* expr, Expr* base) {
  if (expr->indices.size() != 1) {
    error(body, "E0313", expr->range,
          base::concat("`", text(body, base->type), "` takes one index, not ", expr->indices.size()));
    return errorExpr(body, expr->range);
  }
  const syn::Expr* index = expr->indices[0];
  const bool isArray = base->type->kind == TypeKind::Array;
  if (index->is<syn::RangeExpr>() || index->is<syn::FullSliceExpr>()) {
    if (isArray)
      return arraySlice(body, expr, base);
    SliceDim slice;
    DimExpr ignored;
    if (!sliceDim(body, index, nullptr, slice, ignored))
      return errorExpr(body, expr->range);
    Expr* out = make(body, ExprKind::Slice, base->type, expr->range, {base});
    out->slices = {slice};
    return out;
  }
  const DimExpr count = DimExpr::constant(static_cast<int64_t>(base->type->count));
  Expr* position = lang::index(body, index, isArray ? &count : nullptr);
  if (isError(position))
    return errorExpr(body, expr->range);
  if (base->kind == ExprKind::MakeArray && position->kind == ExprKind::Int)  // x.shape[0]
    return base->args[static_cast<size_t>(position->intValue)];
  Expr* out = make(body, ExprKind::Element, base->type->elem, expr->range, {base, position});
  if (body.uncheckedBounds)
    out->guard = Guard::Unchecked;
  return out;
}

/// `a[1..3]`, `a[i..+2]`: an array of these elements.
static Expr* arraySlice(BodyState& body, const syn::IndexExpr* expr, Expr* base) {
  const auto count = static_cast<int64_t>(base->type->count);
  const DimExpr extent = DimExpr::constant(count);
  SliceDim slice;
  DimExpr length;
  if (!sliceDim(body, expr->indices[0], &extent, slice, length))
    return errorExpr(body, expr->range);
  const auto known = length.asConstant();
  if (!known) {
    error(body, "E0310", expr->indices[0]->range, "the length of an array's slice must be known at compile time")
        .primary("this is known only at run time")
        .label(expr->base->range, "`" + text(body, base->type) + "`")
        .help("write `a[i..+3]` with a constant, or keep the values in a `Vec` or tensor");
    return errorExpr(body, expr->range);
  }
  const Expr* begin = slice.begin;
  const auto first = !begin ? std::optional<int64_t>(0) : dimOf(body, begin).asConstant();
  if (*known > count || (first && *first + *known > count)) {
    error(body, "E0314", expr->indices[0]->range,
          base::concat("the slice ends at ", first ? *first + *known : *known, ": the array has ", count, " elements"))
        .label(expr->base->range, "`" + text(body, base->type) + "`");
    return errorExpr(body, expr->range);
  }
  std::vector<Expr*> before, elems;
  Expr* at = slice.begin && slice.begin->kind != ExprKind::Int && slice.begin->kind != ExprKind::Var
                 ? temporary(body, slice.begin, before)
                 : slice.begin;
  Expr* place = base->kind == ExprKind::Var || base->kind == ExprKind::Field || base->kind == ExprKind::Deref
                    ? base
                    : temporary(body, base, before);
  for (int64_t i = 0; i < *known; ++i) {
    Expr* position = makeInt(body, i + first.value_or(0), usize(body), expr->range);
    if (!first) {
      position = make(body, ExprKind::Binary, usize(body), expr->range,
                      {repeatedPlace(body, at, before), makeInt(body, i, usize(body), expr->range)});
      position->binaryOp = BinaryOp::Add;
    }
    elems.push_back(
        make(body, ExprKind::Element, base->type->elem, expr->range, {repeatedPlace(body, place, before), position}));
  }
  Type type = body.types.array(base->type->elem, static_cast<uint64_t>(*known));
  Expr* out = make(body, ExprKind::MakeArray, type, expr->range, std::move(elems));
  if (before.empty())
    return out;
  before.push_back(out);
  return make(body, ExprKind::Block, type, expr->range, std::move(before));
}

static bool sliceDim(BodyState& body, const syn::Expr* expr, const DimExpr* extent, SliceDim& out, DimExpr& length) {
  if (expr->is<syn::FullSliceExpr>()) {
    out.kind = SliceDim::Kind::Full;
    length = extent ? *extent : DimExpr::opaque(body.session.newOpaque());
    return true;
  }
  auto* range = expr->tryAs<syn::RangeExpr>();
  if (!range) {
    out.kind = SliceDim::Kind::Index;
    out.begin = index(body, expr, extent);
    return !isError(out.begin);
  }
  out.kind = SliceDim::Kind::Range;
  out.endIsLength = range->endIsLength;
  if (range->begin) {
    out.begin = index(body, range->begin, nullptr);
    if (isError(out.begin))
      return false;
  }
  if (range->end) {
    out.end = index(body, range->end, nullptr);
    if (isError(out.end))
      return false;
  }
  const DimExpr begin = out.begin ? dimOf(body, out.begin) : DimExpr::constant(0);
  if (out.endIsLength && out.end)
    length = dimOf(body, out.end);
  else if (out.end || extent)
    length = DimExpr::sub(out.end ? dimOf(body, out.end) : *extent, begin);
  else
    length = DimExpr::opaque(body.session.newOpaque());
  if (auto constant = length.asConstant(); constant && *constant < 0) {
    error(body, "E0314", expr->range, base::concat("this range ends before it begins: its length is ", *constant));
    return false;
  }
  if (mentionsMutable(body, length))  // the variable may change before the next slice
    length = DimExpr::opaque(body.session.newOpaque());
  return true;
}

static bool mentionsMutable(const BodyState& body, const DimExpr& dim) {
  for (const auto& [monomial, coefficient] : dim.terms())
    for (const DimAtom& atom : monomial) {
      if (atom.kind == DimAtom::Kind::Opaque && body.mutableOpaques.count(atom.id))
        return true;
      for (const DimExpr& operand : atom.operands)
        if (mentionsMutable(body, operand))
          return true;
    }
  return false;
}

static Expr* checkTensorIndex(BodyState& body, const syn::IndexExpr* expr, Expr* base) {
  Type type = base->type;
  if (base->kind == ExprKind::Var && !base->variable->fragment.empty()) {
    error(body, "E0466", expr->range,
          base::concat("`", base->variable->name, "` is spread over the threads and has no elements to index"))
        .label(base->variable->range,
               base::concat("declared as one thread's part of a `", shapeText(body, type), "` product"))
        .help(base::concat("declare it `", text(body, body.types.tensor(type->elem, type->shape, Space::Local)),
                           "` to index it"));
    return errorExpr(body, expr->range);
  }
  if (expr->indices.size() > type->rank() || expr->indices.empty()) {
    error(body, "E0313", expr->range,
          base::concat("this tensor has rank ", type->rank(), ", but ", expr->indices.size(),
                       expr->indices.size() == 1 ? " index is" : " indices are", " given"))
        .label(expr->base->range, "`" + text(body, type) + "`");
    return errorExpr(body, expr->range);
  }
  std::vector<SliceDim> slices(type->rank());
  std::vector<DimExpr> shape;
  bool allIndices = expr->indices.size() == type->rank(), ok = true;
  for (size_t i = 0; i < type->rank(); ++i) {
    DimExpr length = type->shape[i];
    if (i < expr->indices.size())
      ok = sliceDim(body, expr->indices[i], &type->shape[i], slices[i], length) && ok;
    if (slices[i].kind != SliceDim::Kind::Index) {
      allIndices = false;
      shape.push_back(length);
    }
  }
  if (!ok)
    return errorExpr(body, expr->range);
  const auto isRange = [](const SliceDim& dim) { return dim.kind == SliceDim::Kind::Range; };
  if (base->kind == ExprKind::Slice && std::ranges::none_of(base->slices, isRange)) {  // `x[i][j]` is `x[i, j]`
    std::vector<SliceDim> all = base->slices;
    auto next = slices.begin();
    for (SliceDim& dim : all)
      if (dim.kind == SliceDim::Kind::Full)
        dim = *next++;
    slices = std::move(all);
    base = base->args.front();
  }
  if (!allIndices) {
    Expr* out = make(body, ExprKind::Slice,
                     type->isValue ? body.types.tensorValue(type->elem, shape)
                                   : body.types.tensor(type->elem, shape, type->space, type->layout, type->param),
                     expr->range, {base});
    out->slices = std::move(slices);
    if (body.uncheckedBounds)
      out->guard = Guard::Unchecked;
    return out;
  }
  if (!inKernel(body) && body.instance) {
    error(body, "E0404", expr->range, "host code cannot access an element of device memory")
        .primary("this tensor lives on the device")
        .help("read it back first: `let v = " + std::string(body.session.sources.text(expr->base->range)) +
              ".to_host()`");
    return errorExpr(body, expr->range);
  }
  Expr* out = make(body, ExprKind::Element, type->elem, expr->range, {base});
  for (const SliceDim& slice : slices)
    out->args.push_back(slice.begin);
  if (body.uncheckedBounds)
    out->guard = Guard::Unchecked;
  return out;
}

std::vector<Expr*> extents(BodyState& body, const syn::Expr* expr, bool allowScalar, std::string_view what) {
  std::vector<Expr*> out;
  std::vector<const syn::Expr*> elems{expr};
  if (auto* list = expr->tryAs<syn::ArrayExpr>(); list && list->form == syn::ArrayForm::List && !list->isVec)
    elems.assign(list->elems.begin(), list->elems.end());
  else if (auto* tuple = expr->tryAs<syn::TupleExpr>(); tuple && !tuple->elems.empty())
    elems.assign(tuple->elems.begin(), tuple->elems.end());
  else if (!allowScalar) {
    error(body, "E0332", expr->range, base::concat(what, " is a list such as `[M, N]`"));
    return out;
  }
  for (const syn::Expr* elem : elems) {
    Expr* extent = wholeNumber(body, elem);
    if (extent->kind == ExprKind::Int && extent->intValue < 0) {
      error(body, "E0332", elem->range, "an extent cannot be negative")
          .help("write the number of elements that is left: `x.reshape([M * N])`");
      return {};
    }
    extent = asIndex(body, extent, nullptr);
    if (isError(extent))
      return {};
    out.push_back(extent);
  }
  return out;
}

}  // namespace vortex::lang
