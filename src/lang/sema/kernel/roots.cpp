#include "lang/sema/kernel/roots.h"

#include "lang/sema/children.h"

namespace vortex::lang {

bool isAtomic(Builtin builtin) { return builtin >= Builtin::AtomicAdd && builtin <= Builtin::AtomicStore; }

const Expr* tensorElement(const Expr& place) {
  const Expr* at = &place;
  while (at->kind == ExprKind::Field ||
         (at->kind == ExprKind::Element && stripRef(at->args[0]->type)->kind == TypeKind::Array))
    at = at->args[0];
  return at->kind == ExprKind::Element && stripRef(at->args[0]->type)->isTensor() ? at : nullptr;
}

bool isWarpOperation(Builtin builtin) { return builtin >= Builtin::SyncWarp && builtin <= Builtin::WarpAll; }

bool isBlockReduction(Builtin builtin) { return builtin >= Builtin::BlockSum && builtin <= Builtin::BlockAll; }

Roots::Roots(const Function& kernel) {
  if (kernel.body)
    collect(*kernel.body);
  for (const Expr* place : stores_)
    if (const Variable* root = rootOf(*place))
      written_.insert(root);
}

void Roots::collect(const Expr& expr) {
  if (expr.kind == ExprKind::Let && expr.variable && !expr.args.empty())
    initialisers_[expr.variable] = expr.args[0];
  if (expr.kind == ExprKind::Assign) {
    if (expr.args[0]->kind == ExprKind::Var)
      assigned_.insert(expr.args[0]->variable);
    stores_.push_back(expr.args[0]);
  }
  if (expr.kind == ExprKind::Builtin && expr.builtin == Builtin::AsyncStage)
    stores_.push_back(expr.args[1]);
  if (expr.kind == ExprKind::Builtin && isAtomic(expr.builtin) && expr.builtin != Builtin::AtomicLoad)
    stores_.push_back(expr.args[0]);
  for (const Expr* arg : expr.args)
    if (arg)
      collect(*arg);
  for (const SliceDim& slice : expr.slices) {
    if (slice.begin)
      collect(*slice.begin);
    if (slice.end)
      collect(*slice.end);
  }
}

/// What a `let` copies, rather than names.
static bool isStored(const Expr& value) { return value.kind == ExprKind::Var && value.variable->isStoredValue; }

const Variable* Roots::rootOf(const Expr& place) const {
  const Expr* at = &place;
  // Each step goes to an operand or to an earlier variable, so this ends.
  while (at) {
    switch (at->kind) {
    case ExprKind::Var: {
      Type type = at->variable->type;
      bool borrows = type && (type->kind == TypeKind::Ref || type->isTensor()) && !at->variable->isParam;
      auto found = initialisers_.find(at->variable);
      bool aliases = borrows && found != initialisers_.end() && !at->variable->isStoredValue &&
                     !isStored(*found->second) &&
                     (found->second->kind == ExprKind::Ref || found->second->kind == ExprKind::Slice ||
                      found->second->kind == ExprKind::Var || found->second->kind == ExprKind::Deref);
      if (!aliases)
        return at->variable;
      at = found->second;
      break;
    }
    case ExprKind::Element:
    case ExprKind::Slice:
    case ExprKind::Field:
    case ExprKind::Ref:
    case ExprKind::Deref: at = at->args.empty() ? nullptr : at->args[0]; break;
    default: return nullptr;
    }
  }
  return nullptr;
}

const Expr* Roots::soleValue(const Variable* variable) const {
  if (!variable || assigned_.contains(variable))
    return nullptr;
  auto found = initialisers_.find(variable);
  return found == initialisers_.end() ? nullptr : found->second;
}

/// Seen as sign- or zero-extended to 64 bits, the value is the same before and after.
static bool keepsValue(Scalar from, Scalar to) {
  if (bitWidth(from) > bitWidth(to))
    return false;
  return isUnsigned(from) ? bitWidth(from) < bitWidth(to) || isUnsigned(to) || bitWidth(to) == 64
                          : !isUnsigned(to) || bitWidth(to) == 64;
}

const Expr* stripIntegerCasts(const Expr* expr, const Roots& roots) {
  while (expr) {
    if (expr->kind == ExprKind::Cast && expr->type->kind == TypeKind::Scalar && isInteger(expr->type->scalar)) {
      Type from = expr->args[0]->type;
      if (from->kind != TypeKind::Scalar || !isInteger(from->scalar) || !keepsValue(from->scalar, expr->type->scalar))
        return expr;
      expr = expr->args[0];
    } else if (expr->kind == ExprKind::Var) {
      const Expr* value = roots.soleValue(expr->variable);
      if (!value)
        return expr;
      expr = value;
    } else {
      return expr;
    }
  }
  return expr;
}

/// The values that an inlined call returns; those of calls inside it are theirs.
static void collectReturned(const Expr& expr, std::vector<const Expr*>& values) {
  if (expr.kind == ExprKind::Return && !expr.args.empty())
    values.push_back(expr.args[0]);
  if (expr.kind != ExprKind::Inline)
    forEachChild(expr, [&](const Expr& child) { collectReturned(child, values); });
}

/// The part of an aggregate that is written as one; null where it may have been changed or chosen since.
static const Expr* definingPart(const Expr& aggregate, size_t part, const Roots& roots) {
  const Expr* at = definingValue(&aggregate, roots);
  const bool isWritten =
      at->kind == ExprKind::MakeTuple || at->kind == ExprKind::MakeStruct || at->kind == ExprKind::MakeArray;
  return isWritten && part < at->args.size() ? at->args[part] : nullptr;
}

/// One step towards the value; null where it is not written in one place.
static const Expr* definingStep(const Expr& expr, const Roots& roots) {
  switch (expr.kind) {
  case ExprKind::Var: return roots.isWritten(expr.variable) ? nullptr : roots.soleValue(expr.variable);
  case ExprKind::Ref:
  case ExprKind::Deref: return expr.args[0];
  case ExprKind::Field: return definingPart(*expr.args[0], static_cast<size_t>(expr.ints[0]), roots);
  case ExprKind::Element: {
    const Expr* index = expr.args.size() == 2 ? stripIntegerCasts(expr.args[1], roots) : nullptr;
    return index && index->kind == ExprKind::Int && index->intValue >= 0
               ? definingPart(*expr.args[0], static_cast<size_t>(index->intValue), roots)
               : nullptr;
  }
  case ExprKind::Block: return expr.args.empty() ? nullptr : expr.args.back();
  case ExprKind::Inline: {
    const Expr& body = *expr.args.back();
    std::vector<const Expr*> values;
    collectReturned(body, values);
    if (values.empty())
      return &body;
    return values.size() == 1 && body.type->kind == TypeKind::Never ? values[0] : nullptr;
  }
  default: return nullptr;
  }
}

const Expr* definingValue(const Expr* expr, const Roots& roots) {
  while (true) {
    expr = stripIntegerCasts(expr, roots);
    const Expr* next = definingStep(*expr, roots);
    if (!next || next->type->kind == TypeKind::Unit)
      return expr;
    expr = next;
  }
}

}  // namespace vortex::lang
