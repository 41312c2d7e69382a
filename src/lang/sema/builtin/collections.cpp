// Vec, transfers between host and device, ranges.
#include "lang/sema/builtin/collections.h"
#include "lang/sema/builtin/call.h"
#include "lang/sema/builtin/tensor.h"
#include "lang/sema/check/exprs/assign.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/index.h"
#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/exprs/name_expr.h"
#include "lang/sema/check/exprs/open.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/types/resolve_type.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

Expr* vecArg(BuiltinCall& call, bool isChanged) {
  Expr* vec = call.arg(0);
  if (isError(vec))
    return nullptr;
  if (vec->type->kind != TypeKind::Vec) {
    call.wrongArg(vec, "a `Vec`");
    return nullptr;
  }
  return isChanged && !checkWritable(call.body, vec, call.nameRange, "changed") ? nullptr : vec;
}

}  // namespace

Expr* checkFromHost(BuiltinCall& call) {
  BodyState& body = call.body;
  Type expected = call.expected && call.expected->kind == TypeKind::Ref ? call.expected->elem : call.expected;
  Expr* values = call.arg(0, expected && expected->isTensor() ? body.types.vec(expected->elem) : nullptr);
  if (isError(values))
    return call.failed();
  if (values->type->kind != TypeKind::Vec && values->type->kind != TypeKind::Array)
    return call.wrongArg(values, "a `Vec`");
  Type elem = values->type->elem;
  if (elem->kind != TypeKind::Scalar && elem->kind != TypeKind::Struct && elem->kind != TypeKind::Tuple &&
      elem->kind != TypeKind::Array)
    return call.wrongArg(values, "a `Vec` of numbers or structs");
  if (!checkElement(body, elem, values->range))
    return call.failed();
  std::vector<DimExpr> shape;
  std::vector<Expr*> args{values};
  Type declared = nullptr;
  if (call.has(1)) {
    std::vector<Expr*> extents = lang::extents(body, call.placed[1], false, "a shape");
    if (extents.empty())
      return call.failed();
    for (const Expr* extent : extents)
      shape.push_back(dimOf(body, extent));
    const size_t rank = extents.size();
    args.push_back(make(body, ExprKind::MakeArray, body.types.array(usize(body), rank), call.placed[1]->range,
                        std::move(extents)));
  } else if (expected && expected->isTensor()) {
    uint32_t unknown = 0;
    for (const DimExpr& extent : expected->shape) {
      auto variable = extent.asVariable();
      unknown += (variable && body.pendingDims.count(*variable)) || !isCounted(body, extent);
    }
    if (unknown > 1) {
      error(body, "E0327", call.range(), base::concat("the number of values cannot determine ", unknown, " extents"))
          .help("at most one extent of the declared shape may be new");
      return call.failed();
    }
    declared = body.types.tensor(elem, expected->shape, madeSpace(body, expected));
  } else {
    shape.push_back(values->type->kind == TypeKind::Array ? DimExpr::constant(static_cast<int64_t>(values->type->count))
                                                          : DimExpr::opaque(body.session.newOpaque()));
  }
  if (!declared)
    declared = body.types.tensor(elem, std::move(shape), madeSpace(body, expected));
  return makeBuiltin(body, Builtin::FromHost, declared, call.range(), std::move(args));
}

Expr* checkToHost(BuiltinCall& call) {
  Expr* tensor = call.arg(0);
  if (isError(tensor))
    return call.failed();
  return makeBuiltin(call.body, Builtin::ToHost, call.body.types.vec(tensor->type->elem), call.range(), {tensor});
}

Expr* checkLen(BuiltinCall& call) {
  Expr* value = call.arg(0);
  if (isError(value))
    return call.failed();
  if (value->type->kind == TypeKind::Array)
    return makeInt(call.body, static_cast<__int128>(value->type->count), usize(call.body), call.range());
  if (value->type->isTensor()) {
    if (value->type->rank() != 1)
      return call.wrongArg(value, "a tensor of rank 1 (see `.shape`)");
    return extentOf(call.body, value, 0, call.range());
  }
  return makeBuiltin(call.body, Builtin::Len, usize(call.body), call.range(), {value});
}

Expr* checkPush(BuiltinCall& call) {
  Expr* vec = vecArg(call, true);
  if (!vec)
    return call.failed();
  Expr* value = call.rawArg(1, vec->type->elem);
  if (isError(vec->type->elem)) {  // `var v = vec![]`: the first element decides
    if (!isError(value))
      learnType(call.body, vec, call.body.types.vec(value->type));
    return call.failed();
  }
  value =
      convert(call.body, value, vec->type->elem, Site::Argument, vec->range, "`" + text(call.body, vec->type) + "`");
  return isError(value) ? call.failed()
                        : makeBuiltin(call.body, Builtin::Push, call.body.types.unit(), call.range(), {vec, value});
}

Expr* checkPop(BuiltinCall& call) {
  Expr* vec = vecArg(call, true);
  return vec ? makeBuiltin(call.body, Builtin::Pop, vec->type->elem, call.range(), {vec}) : call.failed();
}

Expr* checkVecFill(BuiltinCall& call) {
  Expr* count = call.arg(0, call.isUntyped(0) ? call.body.types.scalar(Scalar::I64) : nullptr);
  if (!isError(count) && count->type->kind == TypeKind::Scalar && !isInteger(count->type->scalar)) {
    const auto& sources = call.body.session.sources;
    error(call.body, "E0313", count->range,
          base::concat("the length of a list is an integer, not `", text(call.body, count->type), "`"))
        .help(base::concat("the length comes first: `Vec.filled(", sources.text(call.placed[1]->range), ", ",
                           sources.text(count->range), ")`"));
    return call.failed();
  }
  count = asIndex(call.body, count, nullptr);
  Type hint = call.expected && call.expected->kind == TypeKind::Vec ? call.expected->elem : nullptr;
  Expr* value = call.arg(1, hint);
  if (isError(count) || isError(value))
    return call.failed();
  return makeBuiltin(call.body, Builtin::VecFill, call.body.types.vec(value->type), call.range(), {count, value});
}

/// The arguments; those without a type of their own have that of the others, or else `hint`. Empty: an error.
static std::vector<Expr*> endsOf(BuiltinCall& call, Type hint) {
  BodyState& body = call.body;
  std::vector<const syn::Expr*> written;
  for (const syn::Expr* arg : call.placed)
    if (arg)
      written.push_back(arg);
  std::vector<Expr*> ends(written.size(), nullptr);
  Type known = nullptr;
  for (size_t i = 0; i < written.size(); ++i)
    if (!isUntyped(body, written[i])) {
      ends[i] = value(body, written[i], hint);
      if (isError(ends[i]))
        return {};
      known = known ? known : ends[i]->type;
    }
  for (size_t i = 0; i < written.size(); ++i)
    if (!ends[i])
      ends[i] = value(body, written[i], known ? known : hint);
  return ends;
}

Expr* checkVecRange(BuiltinCall& call) {
  Type elem =
      call.expected && call.expected->kind == TypeKind::Vec ? call.expected->elem : call.body.types.scalar(Scalar::I32);
  Type ends = elem->kind == TypeKind::Scalar && isInteger(elem->scalar) ? elem : call.body.types.scalar(Scalar::I64);
  const std::vector<Expr*> range = endsOf(call, ends);
  if (range.empty())
    return call.failed();
  Expr *begin = range[0], *end = range[1];
  if (isError(begin) || isError(end) || !unify(call.body, begin, end, "Vec.range", call.range()))
    return call.failed();
  if (begin->type->kind != TypeKind::Scalar || !isInteger(begin->type->scalar))
    return call.wrongArg(begin, "integers");
  if (!(call.expected && call.expected->kind == TypeKind::Vec))
    elem = begin->type;
  return makeBuiltin(call.body, Builtin::VecRange, call.body.types.vec(elem), call.range(), {begin, end});
}

Expr* checkMap(BuiltinCall& call) {
  Expr* vec = vecArg(call, false);
  if (!vec)
    return call.failed();
  Type result = call.expected && call.expected->kind == TypeKind::Vec ? call.expected->elem : call.body.types.error();
  Expr* closure = call.arg(1, call.body.types.closure({vec->type->elem}, result));
  if (isError(closure))
    return call.failed();
  if (closure->type->kind != TypeKind::Closure || closure->type->elems != std::vector<Type>{vec->type->elem})
    return call.wrongArg(closure, "a closure of one element: `v.map(|x| …)`");
  if (closure->type->elem->kind == TypeKind::Unit)
    return call.wrongArg(closure, "a closure that gives a value");
  return makeBuiltin(call.body, Builtin::Map, call.body.types.vec(closure->type->elem), call.range(), {vec, closure});
}

/// The total in `|total, x| …` if its type is not written.
static const syn::Pattern* patternOfTotal(const syn::Expr* written) {
  auto* closure = written->tryAs<syn::ClosureExpr>();
  return closure && closure->params.size() == 2 && !closure->params[0].type ? closure->params[0].pattern : nullptr;
}

Expr* checkFold(BuiltinCall& call) {
  BodyState& body = call.body;
  Expr* vec = vecArg(call, false);
  if (!vec)
    return call.failed();
  // A plain number starts as an element, until the closure shows that the total is something else.
  const syn::Pattern* pattern = call.expected ? nullptr : patternOfTotal(call.placed[2]);
  const auto known = pattern ? body.inferred.find(pattern->range.begin) : body.inferred.end();
  Type total = known != body.inferred.end() ? known->second
               : call.expected              ? call.expected
               : call.isUntyped(1)          ? vec->type->elem
                                            : nullptr;
  Expr* initial = call.arg(1, total);
  if (isError(initial))
    return call.failed();
  if (pattern)
    openNumbers(body, pattern->range, call.placed[1], initial->type);
  Expr* closure = call.arg(2, body.types.closure({initial->type, vec->type->elem}, initial->type));
  if (isError(closure))
    return call.failed();
  if (closure->type != body.types.closure({initial->type, vec->type->elem}, initial->type))
    return call.wrongArg(closure, "a closure of the total and an element: `v.fold(0, |total, x| …)`");
  return makeBuiltin(body, Builtin::Fold, initial->type, call.range(), {vec, initial, closure});
}

Expr* checkSort(BuiltinCall& call) {
  Expr* vec = vecArg(call, true);
  if (!vec)
    return call.failed();
  if (vec->type->elem->kind != TypeKind::Scalar)
    return call.wrongArg(vec, "a `Vec` of numbers");
  return makeBuiltin(call.body, Builtin::SortVec, call.body.types.unit(), call.range(), {vec});
}

Expr* checkRangeCall(BuiltinCall& call) {
  BodyState& body = call.body;
  std::vector<Expr*> ends = endsOf(call, nullptr);
  if (ends.empty())
    return call.failed();
  if (ends.size() == 1)
    ends.insert(ends.begin(), makeInt(body, 0, ends[0]->type, call.range()));
  Expr* out = rangeOf(body, ends[0], ends[1], false, call.range());
  if (isError(out) || ends.size() < 3)
    return out;
  Expr* step = ends[2];
  if (isError(step) || !unify(body, out->args[0], step, "range", call.range()))
    return call.failed();
  if (step->kind == ExprKind::Int && step->intValue == 0) {
    error(body, "E0314", step->range, "a range cannot have the step 0");
    return call.failed();
  }
  out->args.push_back(step);
  return out;
}

}  // namespace vortex::lang
