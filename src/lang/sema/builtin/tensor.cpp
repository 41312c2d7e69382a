// Tensors: creation, shape changes, reductions.
#include "lang/sema/builtin/tensor.h"
#include "lang/sema/builtin/call.h"
#include "lang/sema/check/constants/constants.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/index.h"
#include "lang/sema/check/exprs/operators.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

/// The element type from `::<T>`, the context or the default; null after an error.
Type elementType(BuiltinCall& call, Type fallback) {
  if (call.generics.size() > 1 || (call.generics.size() == 1 && !call.generics[0].type)) {
    error(call.body, "E0329", call.nameRange, base::concat("`", call.row.name, "` takes one type argument"));
    return nullptr;
  }
  if (call.generics.size() == 1) {
    Type type = resolveType(call.body, call.generics[0].type, DimPolicy::Known);
    return isError(type) ? nullptr : type;
  }
  if (call.expected && call.expected->isTensor())
    return call.expected->elem;
  return fallback;
}

/// A tensor that the call makes: global (or constant) memory on the host, a value in kernels.
Type madeType(BuiltinCall& call, Type elem, std::vector<DimExpr> shape) {
  BodyState& body = call.body;
  return inKernel(body) ? body.types.tensorValue(elem, std::move(shape))
                        : body.types.tensor(elem, std::move(shape), madeSpace(body, call.expected));
}

struct WrittenShape {
  std::vector<DimExpr> dims;
  Expr* list = nullptr;  ///< the extents as an array, when written
  bool ok = false;
};

WrittenShape shapeOf(BuiltinCall& call, const syn::Expr* written) {
  BodyState& body = call.body;
  WrittenShape out;
  if (written) {
    std::vector<Expr*> extents = lang::extents(body, written, false, "a shape");
    if (extents.empty() && !(written->is<syn::ArrayExpr>() && written->as<syn::ArrayExpr>()->elems.empty()))
      return out;
    for (const Expr* extent : extents)
      out.dims.push_back(dimOf(body, extent));
    const size_t count = extents.size();
    out.list =
        make(body, ExprKind::MakeArray, body.types.array(usize(body), count), written->range, std::move(extents));
    out.ok = true;
    return out;
  }
  Type expected = call.expected;
  if (expected && expected->kind == TypeKind::Ref)
    expected = expected->elem;
  if (expected && isError(expected))
    return out;
  if (!expected || !expected->isTensor()) {
    error(body, "E0327", call.range(), base::concat("the shape of `", call.row.name, "` is not known here"))
        .help(base::concat("write it: `", call.row.name, "([M, N])`, or declare the variable's type"));
    return out;
  }
  for (const DimExpr& extent : expected->shape) {
    auto variable = extent.asVariable();
    if (!isCounted(body, extent) || (variable && body.pendingDims.count(*variable))) {
      const std::string shown = text(body, extent);
      error(body, "E0327", call.range(),
            base::concat(shown == "_" ? "an extent" : "the extent `" + shown + "`", " of `", call.row.name,
                         "` is not known here"))
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
  if (isError(x))
    return nullptr;
  if (!x->type->isTensor()) {
    call.wrongArg(x, "a tensor");
    return nullptr;
  }
  if (!inKernel(call.body)) {
    hostTensorArithmetic(call.body, call.range());
    return nullptr;
  }
  return x;
}

std::optional<int64_t> oneDim(BuiltinCall& call, const syn::Expr* expr, uint32_t rank) {
  BodyState& body = call.body;
  auto value = constantInt(body, expr, body.types.scalar(Scalar::I32), "a dimension number");
  if (!value)
    return std::nullopt;
  if (*value < -static_cast<__int128>(rank) || *value >= rank) {
    error(body, "E0313", expr->range,
          base::concat("there is no dimension ", static_cast<long long>(*value), ": the tensor has rank ", rank))
        .help("dimensions count from 0, or backwards from -1");
    return std::nullopt;
  }
  return static_cast<int64_t>(*value < 0 ? *value + rank : *value);
}

}  // namespace

Space madeSpace(const BodyState& body, Type expected) {
  expected = stripRef(expected);
  const bool isConstant = expected && expected->isTensor() && !expected->isValue && expected->space == Space::Constant;
  return isConstant && !inKernel(body) ? Space::Constant : Space::Global;
}

Expr* checkZeros(BuiltinCall& call) {
  Type elem = elementType(call, call.body.types.scalar(Scalar::F32));
  WrittenShape shape = elem ? shapeOf(call, call.has(0) ? call.placed[0] : nullptr) : WrittenShape{};
  if (!shape.ok)
    return call.failed();
  std::vector<Expr*> args;
  if (shape.list && !inKernel(call.body))
    args.push_back(shape.list);
  return makeBuiltin(call.body, Builtin::Zeros, madeType(call, elem, shape.dims), call.range(), std::move(args));
}

Expr* checkFull(BuiltinCall& call) {
  const syn::Expr* value = call.placed[0];
  const syn::Expr* written = call.has(1) ? call.placed[1] : nullptr;
  if (written && value->is<syn::ArrayExpr>())
    std::swap(value, written);
  Type elem = elementType(call, nullptr);
  Expr* scalar = lang::value(call.body, value, elem ? elem : call.expected);
  if (isError(scalar))
    return call.failed();
  scalar = scalar->type->kind == TypeKind::Ref ? deref(call.body, scalar) : scalar;
  if (scalar->type->kind == TypeKind::Struct ? !checkElement(call.body, scalar->type, scalar->range)
                                             : scalar->type->kind != TypeKind::Scalar)
    return scalar->type->kind == TypeKind::Struct ? call.failed() : call.wrongArg(scalar, "a number or a struct");
  if (elem && scalar->type != elem) {
    if (elem->kind == TypeKind::Scalar && isFloat(elem->scalar) && isFloat(scalar->type->scalar))
      scalar = cast(call.body, scalar, elem);
    else
      scalar = convert(call.body, scalar, elem, Site::Argument);
    if (isError(scalar))
      return call.failed();
  }
  WrittenShape shape = shapeOf(call, written);
  if (!shape.ok)
    return call.failed();
  std::vector<Expr*> args{scalar};
  if (shape.list && !inKernel(call.body))
    args.push_back(shape.list);
  return makeBuiltin(call.body, Builtin::Full, madeType(call, scalar->type, shape.dims), call.range(), std::move(args));
}

Expr* checkArange(BuiltinCall& call) {
  Expr* count = index(call.body, call.placed[0], nullptr);
  Type elem = elementType(call, call.body.types.scalar(Scalar::I32));
  if (isError(count) || !elem)
    return call.failed();
  if (elem->kind != TypeKind::Scalar || elem->scalar == Scalar::Bool) {
    error(call.body, "E0303", call.range(), "`arange` makes numbers, not `" + text(call.body, elem) + "`");
    return call.failed();
  }
  return makeBuiltin(call.body, Builtin::Arange, call.body.types.tensorValue(elem, {dimOf(call.body, count)}),
                     call.range(), {});
}

Expr* checkCopy(BuiltinCall& call) {
  if (inKernel(call.body)) {
    Expr* x = tensorArg(call);
    return x ? makeBuiltin(call.body, Builtin::Copy, call.body.types.tensorValue(x->type->elem, x->type->shape),
                           call.range(), {x})
             : call.failed();
  }
  Expr* value = call.arg(0);
  return isError(value) ? call.failed() : makeBuiltin(call.body, Builtin::Copy, value->type, call.range(), {value});
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
      error(call.body, "E0313", call.placed[1]->range,
            base::concat("a permutation of ", rank, " dimensions names each once"));
      return call.failed();
    }
  } else {
    if (rank < 2) {
      error(call.body, "E0313", call.range(),
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
  Type type = call.body.types.tensorValue(x->type->elem, std::move(shape));
  return makeBuiltin(call.body, Builtin::Transpose, type, call.range(), {x}, std::move(permutation));
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
  if (!agree(call.body, before, after, call.range())) {
    error(call.body, "E0304", call.range(),
          base::concat("`reshape` keeps the number of elements, but `", text(call.body, before), "` is not `",
                       text(call.body, after), "`"))
        .label(x->range, "`" + shapeText(call.body, x->type) + "`");
    return call.failed();
  }
  requireSigns(call.body, x->type, call.range());
  return makeBuiltin(call.body, Builtin::Reshape, call.body.types.tensorValue(x->type->elem, shape.dims), call.range(),
                     {x});
}

Expr* checkBroadcastTo(BuiltinCall& call) {
  Expr* x = tensorArg(call);
  WrittenShape shape = x ? shapeOf(call, call.placed[1]) : WrittenShape{};
  if (!shape.ok)
    return call.failed();
  std::vector<DimExpr> joined;
  if (!broadcastShapes(call.body, {x->type->shape, shape.dims}, joined, call.range()) || joined != shape.dims) {
    error(call.body, "E0304", call.range(), "the tensor cannot be stretched to this shape")
        .label(x->range, "`" + shapeText(call.body, x->type) + "`");
    return call.failed();
  }
  return broadcastTo(call.body, x, shape.dims);
}

Expr* checkReduction(BuiltinCall& call) {
  BodyState& body = call.body;
  const bool isMinMax = call.row.id == Builtin::Min || call.row.id == Builtin::Max;
  const size_t dimAt = isMinMax ? 2 : 1;
  Expr* x = tensorArg(call);
  if (!x)
    return call.failed();
  Type elem = x->type->elem;
  const bool isMean = call.row.id == Builtin::ReduceMean;
  if (!grants(body, elem, {isMean ? BuiltinTrait::Float : BuiltinTrait::Numeric}, call.nameRange,
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
    auto value = constantInt(body, call.placed[dimAt + 1], body.types.boolean(), "`keepdim`");
    if (!value)
      return call.failed();
    keep = *value != 0;
  }
  if (call.row.id == Builtin::ReduceMean && !isFloat(elem->scalar)) {
    elem = body.types.scalar(Scalar::F32);
    x = cast(body, x, withElem(body, x->type, elem));
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
  Type type = shape.empty() ? elem : body.types.tensorValue(elem, std::move(shape));
  return makeBuiltin(body, id, type, call.range(), {x}, {dims.begin(), dims.end()});
}

Expr* checkAlongDim(BuiltinCall& call) {
  BodyState& body = call.body;
  Expr* x = tensorArg(call);
  if (!x)
    return call.failed();
  Type elem = x->type->elem;
  if (!grants(body, elem, {call.row.id == Builtin::Softmax ? BuiltinTrait::Float : BuiltinTrait::Numeric},
              call.nameRange, base::concat("`", call.row.name, "`")))
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
  return makeBuiltin(body, call.row.id, valueOf(body, x->type), call.range(), {x}, {dim});
}

Expr* checkMaskUpperTriangle(BuiltinCall& call) {
  Expr* x = tensorArg(call);
  if (!x)
    return call.failed();
  if (x->type->rank() < 2)
    return call.wrongArg(x, "a tensor of rank 2 or more");
  Expr* value = call.arg(1, x->type->elem);
  if (isError(value))
    return call.failed();
  if (value->type->kind == TypeKind::Scalar && x->type->elem->kind == TypeKind::Scalar &&
      isFloat(value->type->scalar) && isFloat(x->type->elem->scalar))
    value = cast(call.body, value, x->type->elem);
  value = convert(call.body, value, x->type->elem, Site::Argument);
  if (isError(value))
    return call.failed();
  std::vector<Expr*> args{x, value};
  if (call.has(2)) {
    Type signedType = call.body.types.scalar(Scalar::I64);
    Expr* offset = call.arg(2, signedType);
    if (isError(offset) || offset->type->kind != TypeKind::Scalar || !isInteger(offset->type->scalar))
      return call.wrongArg(offset, "an integer offset");
    args.push_back(cast(call.body, offset, signedType));
  }
  return makeBuiltin(call.body, Builtin::MaskUpperTriangle, valueOf(call.body, x->type), call.range(), std::move(args));
}

}  // namespace vortex::lang
