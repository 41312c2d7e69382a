// Barriers, warp operations, atomics.
#include "lang/sema/builtin/device.h"
#include "lang/sema/builtin/call.h"
#include "lang/sema/check/exprs/assign.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/tiles/stage.h"
#include "lang/sema/kernel/roots.h"

#include "base/text.h"

namespace vortex::lang {

Expr* checkBarrier(BuiltinCall& call) {
  return makeBuiltin(call.body, call.row.id, call.body.types.unit(), call.range(), {});
}

/// A value of the view's shape; it exists only to be assigned to a shared tensor.
Expr* checkStage(BuiltinCall& call) {
  Expr* view = call.arg(0);
  if (isError(view) || !isStageable(call.body, view, call.row.name))
    return call.failed();
  return makeBuiltin(call.body, call.row.id, call.body.types.tensorValue(view->type->elem, view->type->shape),
                     call.range(), {view});
}

Expr* checkAsyncStage(BuiltinCall& call) {
  Expr* view = call.arg(0);
  Expr* buffer = call.rawArg(1);
  if (isError(view) || isError(buffer) || !isStageable(call.body, view, call.row.name))
    return call.failed();
  if (buffer->type->kind != TypeKind::Ref || !buffer->type->isMutable || !buffer->type->elem->isTensor()) {
    const Expr* lent = buffer->kind == ExprKind::Ref ? buffer->args[0] : buffer;
    error(call.body, "E0470", buffer->range, "`async_stage` fills a buffer that it borrows")
        .primary("`" + text(call.body, buffer->type) + "`")
        .help(base::concat("lend it: `&mut ", call.body.session.sources.text(lent->range), "`"));
    return call.failed();
  }
  Expr* place = deref(call.body, buffer);
  if (place->kind == ExprKind::Deref && place->args[0]->kind == ExprKind::Ref)
    place = place->args[0]->args[0];
  if (!mayStageInto(call.body, place, view, buffer->range))
    return call.failed();
  return makeBuiltin(call.body, call.row.id, call.body.types.unit(), call.range(), {view, place});
}

Expr* checkShuffle(BuiltinCall& call) {
  Expr* value = call.arg(0, call.expected);
  Expr* lane = call.arg(1, call.body.types.scalar(Scalar::U32));
  if (isError(value) || isError(lane))
    return call.failed();
  if (value->type->kind != TypeKind::Scalar)
    return call.wrongArg(value, "a number");
  if (lane->type->kind != TypeKind::Scalar || !isInteger(lane->type->scalar))
    return call.wrongArg(lane, "an integer lane");
  lane = cast(call.body, lane, call.body.types.scalar(Scalar::U32));
  return makeBuiltin(call.body, call.row.id, value->type, call.range(), {value, lane});
}

Expr* checkThreadReduce(BuiltinCall& call) {
  Expr* value = call.arg(0, call.expected);
  if (isError(value) || value->type->kind != TypeKind::Scalar || value->type->scalar == Scalar::Bool)
    return call.wrongArg(value, "a number");
  return makeBuiltin(call.body, call.row.id, value->type, call.range(), {value});
}

Expr* checkThreadVote(BuiltinCall& call) {
  Expr* value = call.arg(0);
  if (isError(value) || !value->type->isScalar(Scalar::Bool))
    return call.wrongArg(value, "a condition");
  Type type = call.row.id == Builtin::WarpBallot ? call.body.types.scalar(Scalar::U32) : call.body.types.boolean();
  return makeBuiltin(call.body, call.row.id, type, call.range(), {value});
}

namespace {

std::optional<int64_t> option(BuiltinCall& call, size_t at, std::initializer_list<std::string_view> names,
                              int64_t fallback, std::string_view what) {
  if (!call.has(at))
    return fallback;
  auto* name = call.placed[at]->tryAs<syn::DotNameExpr>();
  int64_t index = 0;
  std::string known;
  for (std::string_view candidate : names) {
    if (name && name->name.text == candidate)
      return index;
    known += (known.empty() ? "." : ", .") + std::string(candidate);
    ++index;
  }
  error(call.body, "E0309", call.placed[at]->range, base::concat("this is not ", what)).help("write one of " + known);
  return std::nullopt;
}

bool atomicAllowed(Builtin id, Scalar scalar) {
  const uint32_t width = bitWidth(scalar);
  if (width != 32 && width != 64)
    return false;
  const bool isBits = id == Builtin::AtomicAnd || id == Builtin::AtomicOr || id == Builtin::AtomicXor;
  return !isBits || isInteger(scalar);
}

}  // namespace

Expr* checkAtomic(BuiltinCall& call) {
  BodyState& body = call.body;
  const bool isLoad = call.row.id == Builtin::AtomicLoad, isCompare = call.row.id == Builtin::AtomicCompareExchange;
  const size_t values = isLoad ? 0 : isCompare ? 2 : 1;
  Expr* place = call.rawArg(0);
  if (isError(place))
    return call.failed();
  if (place->kind == ExprKind::Ref)
    place = place->args[0];
  else {
    error(body, "E0303", place->range, base::concat("`", call.row.name, "` needs a place"))
        .help(base::concat("lend the element: `", call.row.name, "(&mut ", body.session.sources.text(place->range),
                           ", …)`"));
    return call.failed();
  }
  if (!tensorElement(*place) || place->type->kind != TypeKind::Scalar) {
    error(
        body, "E0303", place->range,
        base::concat("`", call.row.name, "` works on an element of a tensor, not on `", text(body, place->type), "`"));
    return call.failed();
  }
  if (!isLoad && !checkWritable(body, place, place->range, "changed"))
    return call.failed();
  if (!atomicAllowed(call.row.id, place->type->scalar)) {
    error(body, "E0303", place->range,
          base::concat("`", call.row.name, "` does not exist for `", text(body, place->type), "`"))
        .primary("atomics work on 32- and 64-bit elements");
    return call.failed();
  }
  std::vector<Expr*> args{place};
  for (size_t i = 1; i <= values; ++i) {
    Expr* value = call.arg(i, place->type);
    if (!isError(value))
      value = convert(body, value, place->type, Site::Argument, place->range, "`" + text(body, place->type) + "`");
    if (isError(value))
      return call.failed();
    args.push_back(value);
  }
  auto order = option(call, values + 1, {"relaxed", "acquire", "release", "acq_rel"}, 0, "a memory order");
  auto scope = option(call, values + 2, {"block", "device", "system"}, 1, "a scope");
  if (!order || !scope)
    return call.failed();
  Type result = call.row.id == Builtin::AtomicStore ? body.types.unit() : place->type;
  return makeBuiltin(body, call.row.id, result, call.range(), std::move(args), {*order, *scope});
}

}  // namespace vortex::lang
