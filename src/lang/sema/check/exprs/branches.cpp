#include "lang/sema/check/exprs/branches.h"

#include "lang/sema/check/exprs/convert.h"
#include "lang/sema/check/exprs/open.h"
#include "lang/sema/check/make.h"
#include "lang/sema/check/session.h"
#include "lang/sema/check/types/shapes.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {

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

/// What a value of branches is one of; those that are never reached are left out.
static void addLeaves(Expr* expr, std::vector<Expr*>& leaves) {
  expr = tailOf(expr);
  if (expr->kind == ExprKind::If && expr->args.size() == 3 && expr->type->kind != TypeKind::Unit) {
    addLeaves(expr->args[1], leaves);
    addLeaves(expr->args[2], leaves);
  } else if (expr->type->kind != TypeKind::Never) {
    leaves.push_back(expr);
  }
}

Type commonType(BodyState& body, std::span<Expr* const> values, Type wanted) {
  std::vector<Expr*> leaves;
  for (Expr* value : values)
    addLeaves(value, leaves);
  if (leaves.empty())
    return values.empty() ? nullptr : body.types.never();
  const Type first = leaves[0]->type;
  const auto all = [&](auto&& test) { return std::ranges::all_of(leaves, test); };
  if (all([&](const Expr* each) { return each->type == first; }) && !(wanted && wanted->kind == TypeKind::Scalar))
    return first;
  const bool isTuple = first->kind == TypeKind::Tuple;
  if ((isTuple || first->kind == TypeKind::Array) && all([&](const Expr* each) {
        return each->type->kind == first->kind && each->type->elems.size() == first->elems.size() &&
               each->type->count == first->count;
      })) {
    std::vector<std::vector<Expr*>> columns(isTuple ? first->elems.size() : 1);
    for (Expr* leaf : leaves) {
      const std::vector<Expr*> parts = partsOf(body, leaf);
      for (size_t i = 0; i < parts.size(); ++i)
        columns[isTuple ? i : 0].push_back(parts[i]);
    }
    std::vector<Type> types;
    for (const std::vector<Expr*>& column : columns)
      if (types.push_back(commonType(body, column, nullptr)); !types.back())
        return nullptr;
    return isTuple ? body.types.tuple(std::move(types)) : body.types.array(types[0], first->count);
  }
  // The type of one that has its own, or else the default of one.
  std::vector<Type> candidates(wanted ? 1 : 0, wanted);
  for (const bool open : {false, true})
    for (Expr* leaf : leaves)
      if (isOpen(body, leaf) == open)
        candidates.push_back(leaf->type);
  for (Type type : candidates)
    if (type->kind == TypeKind::Scalar && all([&](Expr* each) { return canTake(body, each, type); }))
      return type;
  Type joined = first;
  for (size_t i = 1; joined && i < leaves.size(); ++i)
    joined = join(body, joined, leaves[i]->type);
  return joined;
}

Type joinBranches(BodyState& body, std::vector<Expr**>& branches, Type expected, SourceRange range) {
  if (expected && expected->kind == TypeKind::Unit) {
    bool allNever = true;
    for (Expr** branch : branches)
      allNever = allNever && (*branch)->type->kind == TypeKind::Never;
    return allNever ? body.types.never() : body.types.unit();
  }
  std::vector<Expr*> values;
  for (Expr** branch : branches) {
    if (isError(*branch))
      return body.types.error();
    if ((*branch)->type->kind != TypeKind::Never)
      values.push_back(*branch);
  }
  if (values.empty())
    return body.types.never();
  if (const Type type = commonType(body, values, expected)) {
    for (Expr** branch : branches)
      if (canTake(body, *branch, type))
        adapt(body, *branch, type);
    return type;
  }
  if (std::ranges::any_of(values, [](const Expr* each) { return each->type->kind == TypeKind::Unit; }))
    return body.types.unit();  // one branch has no value: the statement form
  const Expr* first = tailOf(values[0]);
  const Expr* other = tailOf(*std::ranges::find_if(values, [&](Expr* each) {
    Expr* pair[] = {values[0], each};
    return each == values.back() || !commonType(body, pair, nullptr);
  }));
  auto builder = error(body, "E0301", range,
                       "the branches have different types: `" + text(body, first->type) + "` and `" +
                           text(body, other->type) + "`");
  builder.label(first->range, "`" + text(body, first->type) + "`")
      .label(other->range, "`" + text(body, other->type) + "`");
  const auto isNumber = [](Type type) { return type->kind == TypeKind::Scalar && type->scalar != Scalar::Bool; };
  if (isNumber(first->type) && isNumber(other->type))
    builder.help(base::concat("convert one: `", castText(body, other, first->type, ""), "`"));
  return body.types.error();
}

}  // namespace vortex::lang
