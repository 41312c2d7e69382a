// Vec, transfers between host and device, ranges.
#include "lang/sema/builtin/table.h"

#include "base/text.h"

namespace vortex::lang {
namespace {

Expr* vecArg(BuiltinCall& call, bool isChanged) {
  Expr* vec = call.arg(0);
  if (Checker::isError(vec))
    return nullptr;
  if (vec->type->kind != TypeKind::Vec) {
    call.wrongArg(vec, "a `Vec`");
    return nullptr;
  }
  return isChanged && !call.c.checkWritable(vec, call.nameRange, "changed") ? nullptr : vec;
}

}  // namespace

Expr* checkFromHost(BuiltinCall& call) {
  Checker& c = call.c;
  Type expected = call.expected && call.expected->kind == TypeKind::Ref ? call.expected->elem : call.expected;
  Expr* values = call.arg(0, expected && expected->isTensor() ? c.types.vec(expected->elem) : nullptr);
  if (Checker::isError(values))
    return call.failed();
  if (values->type->kind != TypeKind::Vec && values->type->kind != TypeKind::Array)
    return call.wrongArg(values, "a `Vec`");
  Type elem = values->type->elem;
  if (elem->kind != TypeKind::Scalar && elem->kind != TypeKind::Struct && elem->kind != TypeKind::Tuple &&
      elem->kind != TypeKind::Array)
    return call.wrongArg(values, "a `Vec` of numbers or structs");
  if (!c.checkElement(elem, values->range))
    return call.failed();
  std::vector<DimExpr> shape;
  std::vector<Expr*> args{values};
  Type declared = nullptr;
  if (call.has(1)) {
    std::vector<Expr*> extents = c.extents(call.placed[1], false, "a shape");
    if (extents.empty())
      return call.failed();
    for (const Expr* extent : extents)
      shape.push_back(c.dimOf(extent));
    const size_t rank = extents.size();
    args.push_back(
        c.make(ExprKind::MakeArray, c.types.array(c.usize(), rank), call.placed[1]->range, std::move(extents)));
  } else if (expected && expected->isTensor()) {
    uint32_t unknown = 0;
    for (const DimExpr& extent : expected->shape) {
      auto variable = extent.asVariable();
      unknown += (variable && c.pendingDims.count(*variable)) || !c.isCounted(extent);
    }
    if (unknown > 1) {
      c.error("E0327", call.range(), base::concat("the number of values cannot determine ", unknown, " extents"))
          .help("at most one extent of the declared shape may be new");
      return call.failed();
    }
    declared = c.types.tensor(elem, expected->shape, madeSpace(c, expected));
  } else {
    shape.push_back(values->type->kind == TypeKind::Array ? DimExpr::constant(static_cast<int64_t>(values->type->count))
                                                          : DimExpr::opaque(c.session.newOpaque()));
  }
  if (!declared)
    declared = c.types.tensor(elem, std::move(shape), madeSpace(c, expected));
  return c.makeBuiltin(Builtin::FromHost, declared, call.range(), std::move(args));
}

Expr* checkToHost(BuiltinCall& call) {
  Expr* tensor = call.arg(0);
  if (Checker::isError(tensor))
    return call.failed();
  return call.c.makeBuiltin(Builtin::ToHost, call.c.types.vec(tensor->type->elem), call.range(), {tensor});
}

Expr* checkCopy(BuiltinCall& call) {
  Expr* value = call.arg(0);
  return Checker::isError(value) ? call.failed()
                                 : call.c.makeBuiltin(Builtin::Copy, value->type, call.range(), {value});
}

Expr* checkLen(BuiltinCall& call) {
  Expr* value = call.arg(0);
  if (Checker::isError(value))
    return call.failed();
  if (value->type->kind == TypeKind::Array)
    return call.c.makeInt(static_cast<__int128>(value->type->count), call.c.usize(), call.range());
  if (value->type->isTensor()) {
    if (value->type->rank() != 1)
      return call.wrongArg(value, "a tensor of rank 1 (see `.shape`)");
    return call.c.extentOf(value, 0, call.range());
  }
  return call.c.makeBuiltin(Builtin::Len, call.c.usize(), call.range(), {value});
}

Expr* checkPush(BuiltinCall& call) {
  Expr* vec = vecArg(call, true);
  if (!vec)
    return call.failed();
  Expr* value = call.rawArg(1, vec->type->elem);
  if (Checker::isError(vec->type->elem)) {  // `var v = vec![]`: the first element decides
    if (!Checker::isError(value))
      call.c.learnType(vec, call.c.types.vec(value->type));
    return call.failed();
  }
  value = call.c.convert(value, vec->type->elem, Site::Argument, vec->range, "`" + call.c.text(vec->type) + "`");
  return Checker::isError(value) ? call.failed()
                                 : call.c.makeBuiltin(Builtin::Push, call.c.types.unit(), call.range(), {vec, value});
}

Expr* checkPop(BuiltinCall& call) {
  Expr* vec = vecArg(call, true);
  return vec ? call.c.makeBuiltin(Builtin::Pop, vec->type->elem, call.range(), {vec}) : call.failed();
}

Expr* checkVecFill(BuiltinCall& call) {
  Expr* count = call.c.index(call.placed[0], nullptr);
  Type hint = call.expected && call.expected->kind == TypeKind::Vec ? call.expected->elem : nullptr;
  Expr* value = call.arg(1, hint);
  if (Checker::isError(count) || Checker::isError(value))
    return call.failed();
  return call.c.makeBuiltin(Builtin::VecFill, call.c.types.vec(value->type), call.range(), {count, value});
}

Expr* checkVecRange(BuiltinCall& call) {
  Type elem =
      call.expected && call.expected->kind == TypeKind::Vec ? call.expected->elem : call.c.types.scalar(Scalar::I32);
  Type ends = elem->kind == TypeKind::Scalar && isInteger(elem->scalar) ? elem : call.c.types.scalar(Scalar::I64);
  Expr* begin = call.arg(0, ends);
  Expr* end = call.arg(1, ends);
  if (Checker::isError(begin) || Checker::isError(end) || !call.c.unify(begin, end, "Vec.range", call.range()))
    return call.failed();
  if (begin->type->kind != TypeKind::Scalar || !isInteger(begin->type->scalar))
    return call.wrongArg(begin, "integers");
  if (!(call.expected && call.expected->kind == TypeKind::Vec))
    elem = begin->type;
  return call.c.makeBuiltin(Builtin::VecRange, call.c.types.vec(elem), call.range(), {begin, end});
}

Expr* checkMap(BuiltinCall& call) {
  Expr* vec = vecArg(call, false);
  if (!vec)
    return call.failed();
  Type result = call.expected && call.expected->kind == TypeKind::Vec ? call.expected->elem : call.c.types.error();
  Expr* closure = call.arg(1, call.c.types.closure({vec->type->elem}, result));
  if (Checker::isError(closure))
    return call.failed();
  if (closure->type->kind != TypeKind::Closure || closure->type->elems != std::vector<Type>{vec->type->elem})
    return call.wrongArg(closure, "a closure of one element: `v.map(|x| …)`");
  if (closure->type->elem->kind == TypeKind::Unit)
    return call.wrongArg(closure, "a closure that gives a value");
  return call.c.makeBuiltin(Builtin::Map, call.c.types.vec(closure->type->elem), call.range(), {vec, closure});
}

/// Where the name of the total stands in `|total, x| …`; 0 if nowhere.
static uint32_t positionOfTotal(const syn::Expr* written) {
  auto* closure = written->tryAs<syn::ClosureExpr>();
  auto* name = closure && closure->params.size() == 2 && !closure->params[0].type
                   ? closure->params[0].pattern->tryAs<syn::NamePattern>()
                   : nullptr;
  return name ? name->name.range.begin : 0;
}

Expr* checkFold(BuiltinCall& call) {
  Checker& c = call.c;
  Expr* vec = vecArg(call, false);
  if (!vec)
    return call.failed();
  // A plain number starts as an element, until the closure shows that the total is something else.
  const bool isFree = call.isUntyped(1) && !call.expected;
  const uint32_t position = isFree ? positionOfTotal(call.placed[2]) : 0;
  auto known = position != 0 ? c.inferred.find(position) : c.inferred.end();
  Type total = known != c.inferred.end() ? known->second : call.expected ? call.expected : vec->type->elem;
  Expr* initial = call.arg(1, call.isUntyped(1) || call.expected ? total : nullptr);
  if (Checker::isError(initial))
    return call.failed();
  if (position != 0 && known == c.inferred.end() && initial->type->kind == TypeKind::Scalar)
    c.totals[position] = call.c.isUntypedFloat(call.placed[1]);
  Expr* closure = call.arg(2, c.types.closure({initial->type, vec->type->elem}, initial->type));
  if (Checker::isError(closure))
    return call.failed();
  if (closure->type != c.types.closure({initial->type, vec->type->elem}, initial->type))
    return call.wrongArg(closure, "a closure of the total and an element: `v.fold(0, |total, x| …)`");
  return c.makeBuiltin(Builtin::Fold, initial->type, call.range(), {vec, initial, closure});
}

Expr* checkSort(BuiltinCall& call) {
  Expr* vec = vecArg(call, true);
  if (!vec)
    return call.failed();
  if (vec->type->elem->kind != TypeKind::Scalar)
    return call.wrongArg(vec, "a `Vec` of numbers");
  return call.c.makeBuiltin(Builtin::SortVec, call.c.types.unit(), call.range(), {vec});
}

Expr* checkRangeCall(BuiltinCall& call) {
  Checker& c = call.c;
  std::vector<const syn::Expr*> written;
  for (const syn::Expr* arg : call.placed)
    if (arg)
      written.push_back(arg);
  Type hint = nullptr;
  std::vector<Expr*> ends(written.size(), nullptr);
  for (size_t i = 0; i < written.size(); ++i)
    if (!c.isUntyped(written[i])) {
      ends[i] = c.value(written[i]);
      if (Checker::isError(ends[i]))
        return call.failed();
      hint = hint ? hint : ends[i]->type;
    }
  for (size_t i = 0; i < written.size(); ++i)
    if (!ends[i])
      ends[i] = c.value(written[i], hint);
  if (ends.size() == 1)
    ends.insert(ends.begin(), c.makeInt(0, ends[0]->type, call.range()));
  Expr* out = c.rangeOf(ends[0], ends[1], false, call.range());
  if (Checker::isError(out) || ends.size() < 3)
    return out;
  Expr* step = ends[2];
  if (Checker::isError(step) || !c.unify(out->args[0], step, "range", call.range()))
    return call.failed();
  if (step->kind == ExprKind::Int && step->intValue == 0) {
    c.error("E0314", step->range, "a range cannot have the step 0");
    return call.failed();
  }
  out->args.push_back(step);
  return out;
}

}  // namespace vortex::lang
