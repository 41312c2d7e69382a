#include "lang/sema/check/exprs/branches.h"

#include "lang/sema/check/exprs/literals.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

#include <span>

namespace vortex::lang {

Expr* tailOf(Expr* expr) {
  while (expr->kind == ExprKind::Block && !expr->args.empty())
    expr = expr->args.back();
  return expr;
}
bool isAdaptable(const Expr* expr) {
  return (expr->kind == ExprKind::Int && expr->type->isScalar(Scalar::I32)) ||
         (expr->kind == ExprKind::Float && expr->type->isScalar(Scalar::F32));
}
/// The parts of a tuple or array that is written there, and those of a list repeated.
static std::span<Expr* const> partsOf(const Expr* expr) {
  if (expr->kind == ExprKind::MakeTuple || expr->kind == ExprKind::MakeArray)
    return expr->args;
  return expr->kind == ExprKind::RepeatArray ? std::span(expr->args).first(1) : std::span<Expr* const>();
}
static Type partType(Type whole, size_t part) {
  return whole->kind == TypeKind::Tuple ? whole->elems[part] : whole->elem;
}
bool canAdapt(BodyState& body, const Expr* expr, Type type) {
  if (expr->type == type)
    return true;
  if (std::span<Expr* const> parts = partsOf(expr); !parts.empty()) {
    bool fits = expr->type->kind == type->kind && expr->type->elems.size() == type->elems.size() &&
                expr->type->count == type->count;
    for (size_t i = 0; fits && i < parts.size(); ++i)
      fits = canAdapt(body, parts[i], partType(type, i));
    return fits;
  }
  if (!isAdaptable(expr) || type->kind != TypeKind::Scalar || type->scalar == Scalar::Bool)
    return false;
  if (expr->kind == ExprKind::Float)
    return isFloat(type->scalar) && (!type->isScalar(Scalar::F64) || writtenInF64(body, expr));
  return isFloat(type->scalar) || expr->intValue >= 0 || !isUnsigned(type->scalar);
}
void adaptTail(BodyState& body, Expr* expr, Type type) {
  while (expr->kind == ExprKind::Block && !expr->args.empty()) {
    expr->type = type;
    expr = expr->args.back();
  }
  if (expr->type == type)
    return;
  std::span<Expr* const> parts = partsOf(expr);
  if (parts.empty()) {
    adaptLiteral(body, expr, type);
    return;
  }
  for (size_t i = 0; i < parts.size(); ++i)
    adaptTail(body, parts[i], partType(type, i));
  expr->type = type;
}

/// type of two branches; null if they differ
static Type join(BodyState& body, Type a, Type b) {
  if (a == b || b->kind == TypeKind::Never || isError(a))
    return a;
  if (a->kind == TypeKind::Never || isError(b))
    return b;
  if (!a->isTensor() || !b->isTensor() || a->elem != b->elem || a->rank() != b->rank() ||
      (inKernel(body) && !sameShape(body, a, b)))
    return nullptr;
  // In host code the extents of a tensor are part of its value: which one it is, is known when the branch is taken.
  std::vector<DimExpr> shape = a->shape;
  for (size_t i = 0; i < shape.size(); ++i)
    if (dimEqual(body, a->shape[i], b->shape[i]) != DimEqual::Yes)
      shape[i] = DimExpr::opaque(body.session.newOpaque());
  return body.types.tensorValue(a->elem, std::move(shape));
}

Type joinBranches(BodyState& body, std::vector<Expr**>& branches, Type expected, SourceRange range) {
  if (expected && expected->kind == TypeKind::Unit) {
    bool allNever = true;
    for (Expr** branch : branches)
      allNever = allNever && (*branch)->type->kind == TypeKind::Never;
    return allNever ? body.types.never() : body.types.unit();
  }
  Type type = nullptr;
  Expr* first = nullptr;
  for (Expr** branch : branches) {
    if (isError(*branch))
      return body.types.error();
    if ((*branch)->type->kind == TypeKind::Never)
      continue;
    if (!type) {
      type = (*branch)->type;
      first = *branch;
      continue;
    }
    Type joined = join(body, type, (*branch)->type);
    if (!joined) {
      if (canAdapt(body, tailOf(*branch), type)) {
        adaptTail(body, *branch, type);
        continue;
      }
      if (canAdapt(body, tailOf(first), (*branch)->type)) {
        adaptTail(body, first, (*branch)->type);
        type = (*branch)->type;
        continue;
      }
    }
    if (!joined) {
      if (type->kind == TypeKind::Unit || (*branch)->type->kind == TypeKind::Unit)
        return body.types.unit();  // one branch has no value: the statement form
      auto builder = error(body, "E0301", range,
                           "the branches have different types: `" + text(body, type) + "` and `" +
                               text(body, (*branch)->type) + "`");
      builder.label(tailOf(first)->range, "`" + text(body, type) + "`")
          .label(tailOf(*branch)->range, "`" + text(body, (*branch)->type) + "`");
      return body.types.error();
    }
    type = joined;
  }
  return type ? type : body.types.never();
}

}  // namespace vortex::lang
