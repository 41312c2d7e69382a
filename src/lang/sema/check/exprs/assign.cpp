// Assignment and what may be written.
#include "lang/sema/check/exprs/assign.h"
#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/expr.h"
#include "lang/sema/check/exprs/fields.h"
#include "lang/sema/check/exprs/open.h"
#include "lang/sema/check/exprs/operators.h"
#include "lang/sema/check/exprs/statements.h"
#include "lang/sema/check/exprs/structs.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/names/locals.h"
#include "lang/sema/check/names/lookup.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/tiles/fragments.h"
#include "lang/sema/check/tiles/stage.h"
#include "lang/sema/check/traits/bounds.h"
#include "lang/sema/check/traits/traits.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {

static Expr* compoundValue(BodyState& body, const syn::AssignExpr* expr, Expr*& target, Expr* value);

namespace {

/// For names of tensors that are lent by `&` and assigned to.
constexpr const char* kOwnCopy = "a tensor of its own is a copy: `.copy()` where the name is bound";

bool holdsTensor(Type type) { return type->isTensor() || (type->kind == TypeKind::Array && holdsTensor(type->elem)); }

}  // namespace

bool checkWritable(BodyState& body, Expr* place, SourceRange range, std::string_view what) {
  Expr* at = place;
  while (true) {
    switch (at->kind) {
    case ExprKind::Element:
    case ExprKind::Slice:
      if (!spaceGrants(body, at->args[0]->type, BuiltinTrait::Writable, range, "writing an element"))
        return false;
      if (at->args[0]->type->isTensor() && at->args[0]->type->isValue && at->args[0]->kind == ExprKind::Var) {
        const Variable* value = at->args[0]->variable;
        const bool isUncounted = inKernel(body) && std::ranges::any_of(value->type->shape, &DimExpr::hasOpaque);
        error(body, "E0412", range,
              base::concat("`", value->name, "` is a value without a memory space and cannot be ", what, " by element"))
            .label(value->range, "declared here")
            .help(isUncounted ? "its extents must follow from the shapes of the arguments, or it must be the result"
                              : "declare it by `var`, or give it a space (`@shared`, `@local`)");
        return false;
      }
      if (at->args[0]->type->isTensor() && at->args[0]->type->space == Space::Constant && !at->args[0]->type->isValue) {
        auto builder = error(body, "E0317", range, "constant memory cannot be written");
        if (at->args[0]->kind == ExprKind::Var)
          builder.label(at->args[0]->variable->range, "declared in constant memory here");
        else if (at->args[0]->kind == ExprKind::Deref && at->args[0]->args[0]->kind == ExprKind::Var)
          builder.label(at->args[0]->args[0]->variable->range, "declared in constant memory here");
        builder.help("it is filled by host code: `Tensor.from_host(v)`");
        return false;
      }
      at = at->args[0];
      continue;
    case ExprKind::Field: at = at->args[0]; continue;
    case ExprKind::Deref: {
      Type ref = at->args[0]->type;
      if (ref->isMutable)
        return true;
      auto builder =
          error(body, "E0317", range, base::concat("this cannot be ", what, ": it is behind a `&` reference"));
      if (at->args[0]->kind == ExprKind::Var)
        builder.label(at->args[0]->variable->range,
                      "declare it `" + text(body, body.types.ref(ref->elem, true)) + "` to write through it");
      if (at->args[0]->kind == ExprKind::Var && !at->args[0]->variable->isParam && ref->elem->isTensor())
        builder.help(kOwnCopy);
      return false;
    }
    case ExprKind::Var: break;
    case ExprKind::Unit: return false;
    default: {
      auto builder = error(body, "E0316", range, base::concat("this is not a place that can be ", what));
      if (at->kind == ExprKind::MakeTuple)
        builder.help("assign one by one; to exchange two: `let t = a`, then `a = b` and `b = t`");
      return false;
    }
    }
    break;
  }
  const Variable* variable = at->variable;
  if (variable->isVar || holdsTensor(variable->type)) {
    if (!variable->isParam || variable->isVar)
      return true;
    error(body, "E0315", range,
          base::concat("the parameter `", variable->name, "` is passed by value and cannot be ", what))
        .label(variable->range, "passed by value here")
        .help(base::concat("take it by reference: `", variable->name, ": &mut ", text(body, variable->type), "`"));
    return false;
  }
  auto builder =
      error(body, "E0315", range, base::concat("`", variable->name, "` cannot be ", what, ": it is not a `var`"));
  builder.label(variable->range, variable->isParam ? "a parameter" : "declared here");
  if (variable->isParam)
    builder.help(base::concat("copy it first: `var ", variable->name, " = ", variable->name, "`"));
  else
    builder.help(base::concat("declare it with `var ", variable->name, "`"));
  return false;
}

static const Variable* assignedRoot(const Expr* place) {
  while (place->kind == ExprKind::Field || place->kind == ExprKind::Element || place->kind == ExprKind::Slice ||
         place->kind == ExprKind::Deref)
    place = place->args[0];
  return place->kind == ExprKind::Var && place->variable->range.isValid() ? place->variable : nullptr;
}

/// `p = &b` of a `p` that may not write: meant is another reference, not the value.
static bool rebindsShared(BodyState& body, const Expr* target, const Expr* value, SourceRange range) {
  if (target->kind != ExprKind::Deref || target->args[0]->kind != ExprKind::Var || target->args[0]->type->isMutable ||
      value->type->kind != TypeKind::Ref)
    return false;
  const Variable* variable = target->args[0]->variable;
  auto builder =
      error(body, "E0317", range, base::concat("`", variable->name, "` cannot be made to refer to something else"));
  builder.primary("assigning to a reference writes what it refers to");
  builder.label(variable->range, variable->isParam ? "a parameter" : "bound here, for good");
  builder.help("to exchange two buffers, keep them in one tensor or array and exchange their indices");
  if (!variable->isParam && target->type->isTensor())
    builder.help(kOwnCopy);
  return true;
}

Expr* checkAssign(BodyState& body, const syn::AssignExpr* expr) {
  auto* name = expr->target->tryAs<syn::NameExpr>();
  if (name && !expr->isCompound && !isKnownName(body, name->name.text)) {
    unknownName(body, name->name, expr);
    check(body, expr->value);
    declareLocal(body, newVariable(body, name->name.text, body.types.error(), name->range, true));
    return errorExpr(body, expr->range);
  }
  body.isStoreTarget = !expr->isCompound && expr->target->is<syn::IndexExpr>();
  Expr* target = check(body, expr->target);
  body.isStoreTarget = false;
  if (target->type->kind == TypeKind::Ref)  // assigning to a reference writes what it refers to
    target = deref(body, target);
  if (isError(target)) {
    check(body, expr->value);
    return errorExpr(body, expr->range);
  }
  Type hint = target->type;
  if (expr->isCompound && hint->kind == TypeKind::Scalar &&
      (expr->op == syn::BinaryOp::Shl || expr->op == syn::BinaryOp::Shr))
    hint = nullptr;
  const bool isOpenList = hint && hint->kind == TypeKind::Array && isOpen(body, target);
  if (expr->isCompound && expr->op == syn::BinaryOp::MatMul) {
    error(body, "E0303", expr->opRange, "`@=` does not exist").help("write `a = a @ b`");
    return errorExpr(body, expr->range);
  }
  Expr* value =
      expr->isCompound ? lang::value(body, expr->value, hint) : check(body, expr->value, isOpenList ? nullptr : hint);
  if (isOpenList && !isError(value) && canTake(body, value, hint))
    adapt(body, value, hint);
  if (expr->isCompound && !isError(value) && isField(body, target->type))
    return fieldAssign(body, expr, scalarOperator(expr->op), target, value);
  if (!isError(value) && !expr->isCompound && rebindsShared(body, target, value, expr->target->range))
    return errorExpr(body, expr->range);
  // The value that a `let` without one waits for; whether it is the first one shows the control flow (lang/flow).
  const bool isAwaited = target->kind == ExprKind::Var && target->variable->isDeferred && !expr->isCompound;
  if (isError(value) || (!isAwaited && !checkWritable(body, target, expr->target->range, "assigned")))
    return errorExpr(body, expr->range);
  if (target->kind == ExprKind::Slice && target->type->kind == TypeKind::Vec) {
    error(body, "E0316", expr->target->range, "a part of a list cannot be assigned")
        .help("assign its elements in a loop");
    return errorExpr(body, expr->range);
  }
  if (value->kind == ExprKind::Builtin && value->builtin == Builtin::Stage && !expr->isCompound &&
      !mayStageInto(body, target, value->args[0], expr->target->range))
    return errorExpr(body, expr->range);
  if (target->type->isTensor() && adoptFragment(body, target, value))
    return errorExpr(body, expr->range);
  const bool intoTensor =
      target->type->isTensor() || (target->kind == ExprKind::Element && target->args[0]->type->isTensor());
  value = expr->isCompound ? compoundValue(body, expr, target, value) : value;
  if (isError(value))
    return errorExpr(body, expr->range);
  if (!expr->isCompound && !intoTensor && learnFromStore(body, target, value))
    return errorExpr(body, expr->range);
  const bool shift = expr->isCompound && (expr->op == syn::BinaryOp::Shl || expr->op == syn::BinaryOp::Shr);
  body.assignedTo = assignedRoot(target);
  if (!shift || value->type->isTensor() != target->type->isTensor())
    value = intoTensor
                ? storeConvert(body, value, target->type, expr->target->range, "`" + text(body, target->type) + "`")
                : convert(body, value, target->type, Site::Assign, expr->target->range,
                          "`" + text(body, target->type) + "`");
  body.assignedTo = nullptr;
  if (isError(value))
    return errorExpr(body, expr->range);
  if (target->type->isTensor() && !inKernel(body) && body.instance &&
      (expr->isCompound || target->kind == ExprKind::Slice)) {
    hostTensorArithmetic(body, expr->range);
    return errorExpr(body, expr->range);
  }
  Expr* out = make(body, ExprKind::Assign, body.types.unit(), expr->range, {target, value});
  if (!expr->isCompound && !inKernel(body) && !shareExtents(body, out))
    return errorExpr(body, expr->range);
  out->hasOp = expr->isCompound;
  out->binaryOp = scalarOperator(expr->op);
  if (target->kind == ExprKind::Var)
    body.variableDims.erase(target->variable);
  return out;
}

/// The right side of `op=` in the target's type: checked as the operation would be, then converted.
static Expr* compoundValue(BodyState& body, const syn::AssignExpr* expr, Expr*& target, Expr* value) {
  const BinaryOp op = scalarOperator(expr->op);
  Expr* lhs = target;
  // Only for its checks: the operation is evaluated once, on the place itself.
  const size_t before = body.session.sink().errorCount();
  Expr* result = binary(body, op, lhs, value, expr->range, expr->opRange);
  if (isError(result) || body.session.sink().errorCount() != before)
    return errorExpr(body, expr->range);
  if (result->type->isTensor() && !target->type->isTensor()) {
    return mismatch(body, result, target->type, expr->target->range, "`" + text(body, target->type) + "`");
  }
  if (target->type->isTensor() && !shapesAgree(body, result->type, target->type, expr->opRange)) {
    auto builder = error(body, "E0304", expr->opRange,
                         base::concat("the result has the shape `", shapeText(body, result->type), "`, the target `",
                                      shapeText(body, target->type), "`"));
    builder.primary("`" + shapeText(body, result->type) + "`");
    if (const Variable* root = assignedRoot(target))
      builder.label(root->range, base::concat("declared here as `", text(body, root->type), "`"));
    return errorExpr(body, expr->range);
  }
  Expr* rhs = result->args[1];
  Type elem = target->type->isTensor() ? target->type->elem : target->type;
  Type from = rhs->type->isTensor() ? rhs->type->elem : rhs->type;
  if (from != elem && from->kind == TypeKind::Scalar && elem->kind == TypeKind::Scalar &&
      result->args[0]->kind == ExprKind::Cast) {
    // The target would have to widen: `u8 += u32`.
    return mismatch(body, rhs, target->type, expr->target->range, "`" + text(body, target->type) + "`");
  }
  return rhs;
}

}  // namespace vortex::lang
