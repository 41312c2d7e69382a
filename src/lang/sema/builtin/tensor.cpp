// Tensors: creation, shape changes, reductions.
#include "lang/sema/builtin/table.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

/// The element type from `::<T>`, the context or the default; null after an error.
Type elementType(BuiltinCall& call, Type fallback) {
  if (call.generics.size() > 1 || (call.generics.size() == 1 && !call.generics[0].type)) {
    call.c.error("E0329", call.nameRange, base::concat("`", call.row.name, "` takes one type argument"));
    return nullptr;
  }
  if (call.generics.size() == 1) {
    Type type = call.c.resolveType(call.generics[0].type, DimPolicy::Known);
    return Checker::isError(type) ? nullptr : type;
  }
  if (call.expected && call.expected->isTensor())
    return call.expected->elem;
  return fallback;
}

/// A tensor that the call makes: global (or constant) memory on the host, a value in kernels.
Type madeType(BuiltinCall& call, Type elem, std::vector<DimExpr> shape) {
  Checker& c = call.c;
  return c.inKernel() ? c.types.tensorValue(elem, std::move(shape))
                      : c.types.tensor(elem, std::move(shape), madeSpace(c, call.expected));
}

struct WrittenShape {
  std::vector<DimExpr> dims;
  Expr* list = nullptr;  ///< the extents as an array, when written
  bool ok = false;
};

WrittenShape shapeOf(BuiltinCall& call, const syn::Expr* written) {
  Checker& c = call.c;
  WrittenShape out;
  if (written) {
    std::vector<Expr*> extents = c.extents(written, false, "a shape");
    if (extents.empty() && !(written->is<syn::ArrayExpr>() && written->as<syn::ArrayExpr>()->elems.empty()))
      return out;
    for (const Expr* extent : extents)
      out.dims.push_back(c.dimOf(extent));
    const size_t count = extents.size();
    out.list = c.make(ExprKind::MakeArray, c.types.array(c.usize(), count), written->range, std::move(extents));
    out.ok = true;
    return out;
  }
  Type expected = call.expected;
  if (expected && expected->kind == TypeKind::Ref)
    expected = expected->elem;
  if (!expected || !expected->isTensor()) {
    c.error("E0327", call.range(), base::concat("the shape of `", call.row.name, "` is not known here"))
        .help(base::concat("write it: `", call.row.name, "([M, N])`, or declare the variable's type"));
    return out;
  }
  for (const DimExpr& extent : expected->shape) {
    auto variable = extent.asVariable();
    if (!c.isCounted(extent) || (variable && c.pendingDims.count(*variable))) {
      c.error("E0327", call.range(),
              base::concat("the extent `", c.text(extent), "` of `", call.row.name, "` is not known here"))
          .help(base::concat("write the shape: `", call.row.name, "([…])`"));
      return out;
    }
  }
  out.dims = expected->shape;
  out.ok = true;
  return out;
}

Expr* tensorArg(BuiltinCall& call) {
  Expr* x = call.arg(0);
  if (Checker::isError(x))
    return nullptr;
  if (!x->type->isTensor()) {
    call.wrongArg(x, "a tensor");
    return nullptr;
  }
  if (!call.c.inKernel()) {
    call.c.hostTensorArithmetic(call.range());
    return nullptr;
  }
  return x;
}

std::optional<int64_t> oneDim(BuiltinCall& call, const syn::Expr* expr, uint32_t rank) {
  Checker& c = call.c;
  auto value = c.constantInt(expr, c.types.scalar(Scalar::I32), "a dimension number");
  if (!value)
    return std::nullopt;
  if (*value < -static_cast<__int128>(rank) || *value >= rank) {
    c.error("E0313", expr->range,
            base::concat("there is no dimension ", static_cast<long long>(*value), ": the tensor has rank ", rank))
        .help("dimensions count from 0, or backwards from -1");
    return std::nullopt;
  }
  return static_cast<int64_t>(*value < 0 ? *value + rank : *value);
}

}  // namespace

Space madeSpace(const Checker& c, Type expected) {
  expected = stripRef(expected);
  const bool isConstant = expected && expected->isTensor() && !expected->isValue && expected->space == Space::Constant;
  return isConstant && !c.inKernel() ? Space::Constant : Space::Global;
}

Expr* checkZeros(BuiltinCall& call) {
  Type elem = elementType(call, call.c.types.scalar(Scalar::F32));
  WrittenShape shape = elem ? shapeOf(call, call.has(0) ? call.placed[0] : nullptr) : WrittenShape{};
  if (!shape.ok)
    return call.failed();
  std::vector<Expr*> args;
  if (shape.list && !call.c.inKernel())
    args.push_back(shape.list);
  return call.c.makeBuiltin(Builtin::Zeros, madeType(call, elem, shape.dims), call.range(), std::move(args));
}

Expr* checkFull(BuiltinCall& call) {
  const syn::Expr* value = call.placed[0];
  const syn::Expr* written = call.has(1) ? call.placed[1] : nullptr;
  if (written && value->is<syn::ArrayExpr>())
    std::swap(value, written);
  Type elem = elementType(call, nullptr);
  Expr* scalar = call.c.value(value, elem ? elem : call.expected);
  if (Checker::isError(scalar))
    return call.failed();
  scalar = scalar->type->kind == TypeKind::Ref ? call.c.deref(scalar) : scalar;
  if (scalar->type->kind == TypeKind::Struct ? !call.c.checkElement(scalar->type, scalar->range)
                                             : scalar->type->kind != TypeKind::Scalar)
    return scalar->type->kind == TypeKind::Struct ? call.failed() : call.wrongArg(scalar, "a number or a struct");
  if (elem && scalar->type != elem) {
    if (elem->kind == TypeKind::Scalar && isFloat(elem->scalar) && isFloat(scalar->type->scalar))
      scalar = call.c.cast(scalar, elem);
    else
      scalar = call.c.convert(scalar, elem, Site::Argument);
    if (Checker::isError(scalar))
      return call.failed();
  }
  WrittenShape shape = shapeOf(call, written);
  if (!shape.ok)
    return call.failed();
  std::vector<Expr*> args{scalar};
  if (shape.list && !call.c.inKernel())
    args.push_back(shape.list);
  return call.c.makeBuiltin(Builtin::Full, madeType(call, scalar->type, shape.dims), call.range(), std::move(args));
}

Expr* checkArange(BuiltinCall& call) {
  Expr* count = call.c.index(call.placed[0], nullptr);
  Type elem = elementType(call, call.c.types.scalar(Scalar::I32));
  if (Checker::isError(count) || !elem)
    return call.failed();
  if (elem->kind != TypeKind::Scalar || elem->scalar == Scalar::Bool) {
    call.c.error("E0303", call.range(), "`arange` makes numbers, not `" + call.c.text(elem) + "`");
    return call.failed();
  }
  return call.c.makeBuiltin(Builtin::Arange, call.c.types.tensorValue(elem, {call.c.dimOf(count)}), call.range(), {});
}

Expr* checkTranspose(BuiltinCall& call) {
  Expr* x = tensorArg(call);
  if (!x)
    return call.failed();
  const uint32_t rank = x->type->rank();
  std::vector<int64_t> permutation;
  if (call.has(1)) {
    auto* list = call.placed[1]->tryAs<syn::ArrayExpr>();
    std::set<int64_t> seen;
    for (size_t i = 0; list && i < list->elems.size(); ++i) {
      auto dim = oneDim(call, list->elems[i], rank);
      if (!dim)
        return call.failed();
      permutation.push_back(*dim);
      seen.insert(*dim);
    }
    if (permutation.size() != rank || seen.size() != rank) {
      call.c.error("E0313", call.placed[1]->range,
                   base::concat("a permutation of ", rank, " dimensions names each once"));
      return call.failed();
    }
  } else {
    if (rank < 2) {
      call.c.error("E0313", call.range(),
                   base::concat("`transpose` swaps the last two dimensions, but the tensor has rank ", rank));
      return call.failed();
    }
    for (uint32_t i = 0; i < rank; ++i)
      permutation.push_back(i);
    std::swap(permutation[rank - 1], permutation[rank - 2]);
  }
  std::vector<DimExpr> shape;
  for (int64_t from : permutation)
    shape.push_back(x->type->shape[static_cast<size_t>(from)]);
  Type type = call.c.types.tensorValue(x->type->elem, std::move(shape));
  return call.c.makeBuiltin(Builtin::Transpose, type, call.range(), {x}, std::move(permutation));
}

Expr* checkReshape(BuiltinCall& call) {
  Expr* x = tensorArg(call);
  WrittenShape shape = x ? shapeOf(call, call.placed[1]) : WrittenShape{};
  if (!shape.ok)
    return call.failed();
  DimExpr before = DimExpr::constant(1), after = DimExpr::constant(1);
  for (const DimExpr& extent : x->type->shape)
    before = DimExpr::mul(before, extent);
  for (const DimExpr& extent : shape.dims)
    after = DimExpr::mul(after, extent);
  if (call.c.dimEqual(before, after) != DimEqual::Yes) {
    call.c
        .error("E0304", call.range(),
               base::concat("`reshape` keeps the number of elements, but `", call.c.text(before), "` is not `",
                            call.c.text(after), "`"))
        .label(x->range, "`" + call.c.shapeText(x->type) + "`");
    return call.failed();
  }
  return call.c.makeBuiltin(Builtin::Reshape, call.c.types.tensorValue(x->type->elem, shape.dims), call.range(), {x});
}

Expr* checkBroadcastTo(BuiltinCall& call) {
  Expr* x = tensorArg(call);
  WrittenShape shape = x ? shapeOf(call, call.placed[1]) : WrittenShape{};
  if (!shape.ok)
    return call.failed();
  std::vector<DimExpr> joined;
  if (!call.c.broadcastShapes({x->type->shape, shape.dims}, joined) || joined != shape.dims) {
    call.c.error("E0304", call.range(), "the tensor cannot be stretched to this shape")
        .label(x->range, "`" + call.c.shapeText(x->type) + "`");
    return call.failed();
  }
  return call.c.broadcastTo(x, shape.dims);
}

Expr* checkReduction(BuiltinCall& call) {
  Checker& c = call.c;
  const bool isMinMax = call.row.id == Builtin::Min || call.row.id == Builtin::Max;
  const size_t dimAt = isMinMax ? 2 : 1;
  Expr* x = tensorArg(call);
  if (!x)
    return call.failed();
  Type elem = x->type->elem;
  const bool isMean = call.row.id == Builtin::ReduceMean;
  if (!c.grants(elem, {isMean ? BuiltinTrait::Float : BuiltinTrait::Numeric}, call.nameRange,
                base::concat("`", call.row.name, "`")))
    return call.failed();
  if (elem->kind != TypeKind::Scalar || elem->scalar == Scalar::Bool)
    return call.wrongArg(x, "a tensor of numbers");
  std::set<int64_t> dims;
  const uint32_t rank = x->type->rank();
  if (call.has(dimAt)) {
    std::vector<const syn::Expr*> written{call.placed[dimAt]};
    if (auto* list = call.placed[dimAt]->tryAs<syn::ArrayExpr>())
      written.assign(list->elems.begin(), list->elems.end());
    for (const syn::Expr* expr : written) {
      auto dim = oneDim(call, expr, rank);
      if (!dim)
        return call.failed();
      dims.insert(*dim);
    }
  } else {
    for (uint32_t i = 0; i < rank; ++i)
      dims.insert(i);
  }
  bool keep = false;
  if (call.has(dimAt + 1)) {
    auto value = c.constantInt(call.placed[dimAt + 1], c.types.boolean(), "`keepdim`");
    if (!value)
      return call.failed();
    keep = *value != 0;
  }
  if (call.row.id == Builtin::ReduceMean && !isFloat(elem->scalar)) {
    elem = c.types.scalar(Scalar::F32);
    x = c.cast(x, c.withElem(x->type, elem));
  }
  std::vector<DimExpr> shape;
  for (uint32_t i = 0; i < rank; ++i)
    if (!dims.count(i))
      shape.push_back(x->type->shape[i]);
    else if (keep)
      shape.push_back(DimExpr::constant(1));
  Builtin id = call.row.id == Builtin::Min   ? Builtin::ReduceMin
               : call.row.id == Builtin::Max ? Builtin::ReduceMax
                                             : call.row.id;
  Type type = shape.empty() ? elem : c.types.tensorValue(elem, std::move(shape));
  return c.makeBuiltin(id, type, call.range(), {x}, {dims.begin(), dims.end()});
}

Expr* checkAlongDim(BuiltinCall& call) {
  Checker& c = call.c;
  Expr* x = tensorArg(call);
  if (!x)
    return call.failed();
  Type elem = x->type->elem;
  if (!c.grants(elem, {call.row.id == Builtin::Softmax ? BuiltinTrait::Float : BuiltinTrait::Numeric}, call.nameRange,
                base::concat("`", call.row.name, "`")))
    return call.failed();
  if (elem->kind != TypeKind::Scalar || elem->scalar == Scalar::Bool ||
      (call.row.id == Builtin::Softmax && !isFloat(elem->scalar)))
    return call.wrongArg(x, call.row.id == Builtin::Softmax ? "a tensor of floats" : "a tensor of numbers");
  int64_t dim = static_cast<int64_t>(x->type->rank()) - 1;
  if (call.has(1)) {
    auto given = oneDim(call, call.placed[1], x->type->rank());
    if (!given)
      return call.failed();
    dim = *given;
  }
  if (dim < 0)
    return call.wrongArg(x, "a tensor with a dimension");
  return c.makeBuiltin(call.row.id, c.valueOf(x->type), call.range(), {x}, {dim});
}

Expr* checkMaskUpperTriangle(BuiltinCall& call) {
  Expr* x = tensorArg(call);
  if (!x)
    return call.failed();
  if (x->type->rank() < 2)
    return call.wrongArg(x, "a tensor of rank 2 or more");
  Expr* value = call.arg(1, x->type->elem);
  if (Checker::isError(value))
    return call.failed();
  if (value->type->kind == TypeKind::Scalar && x->type->elem->kind == TypeKind::Scalar &&
      isFloat(value->type->scalar) && isFloat(x->type->elem->scalar))
    value = call.c.cast(value, x->type->elem);
  value = call.c.convert(value, x->type->elem, Site::Argument);
  return Checker::isError(value)
             ? call.failed()
             : call.c.makeBuiltin(Builtin::MaskUpperTriangle, call.c.valueOf(x->type), call.range(), {x, value});
}

}  // namespace vortex::lang
