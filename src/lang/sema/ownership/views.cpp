#include "lang/sema/ownership/views.h"

#include "lang/sema/ownership/flow.h"

namespace vortex::lang::ownership {

bool isPlace(const Expr& expr) {
  switch (expr.kind) {
  case ExprKind::Var:
  case ExprKind::Field:
  case ExprKind::Element:
  case ExprKind::Slice:
  case ExprKind::Deref: return true;
  default: return false;
  }
}

bool isStorageSlice(const Expr& expr) {
  return expr.kind == ExprKind::Slice && !(expr.type->isTensor() && expr.type->isValue);
}

const Variable* rootOf(const Expr& place) {
  const Expr* at = &place;
  while (at->kind != ExprKind::Var) {
    const bool isPart = isPlace(*at) || at->kind == ExprKind::Ref;
    if (!isPart || at->args.empty())
      return nullptr;
    at = at->args[0];
  }
  return at->variable;
}

void eachExpr(const Expr& expr, const std::function<void(const Expr&)>& found) {
  found(expr);
  for (const Expr* arg : expr.args)
    if (arg)
      eachExpr(*arg, found);
  for (const SliceDim& slice : expr.slices) {
    if (slice.begin)
      eachExpr(*slice.begin, found);
    if (slice.end)
      eachExpr(*slice.end, found);
  }
  for (const Expr* size : expr.launch.grid)
    eachExpr(*size, found);
  for (const Expr* size : expr.launch.block)
    eachExpr(*size, found);
}

void eachWrittenPlace(const Expr& expr, const std::function<void(const Expr&, const Expr&)>& found) {
  eachExpr(expr, [&](const Expr& each) {
    if (each.args.empty() || !each.args[0])
      return;
    const bool isMutableRef = each.kind == ExprKind::Ref && each.type->isMutable;
    const bool isAtomic = each.kind == ExprKind::Builtin && each.builtin >= Builtin::AtomicAdd &&
                          each.builtin <= Builtin::AtomicStore && each.builtin != Builtin::AtomicLoad;
    const bool isMethod =
        each.kind == ExprKind::Builtin &&
        (each.builtin == Builtin::Push || each.builtin == Builtin::Pop || each.builtin == Builtin::SortVec);
    if (each.kind == ExprKind::Builtin && each.builtin == Builtin::AsyncStage)
      found(*each.args[1], each);
    if (each.kind == ExprKind::Assign || isMutableRef || isAtomic || isMethod)
      found(*each.args[0], each);
  });
}

namespace {

/// Does the value name storage of something else when a `let` binds it?
bool yieldsView(const Expr& expr, bool inKernel, const std::set<const Variable*>& views) {
  switch (expr.kind) {
  case ExprKind::Slice: return isStorageSlice(expr);
  case ExprKind::Var: return views.contains(expr.variable);
  case ExprKind::Deref: return inKernel && expr.type->isTensor() && !expr.type->isValue;
  case ExprKind::Block: return !expr.args.empty() && yieldsView(*expr.args.back(), inKernel, views);
  case ExprKind::If:
    return expr.args.size() > 2 &&
           (yieldsView(*expr.args[1], inKernel, views) || yieldsView(*expr.args[2], inKernel, views));
  default: return false;
  }
}

bool isValueTensor(Type type) { return type->isTensor() && type->isValue; }

}  // namespace

Views findViews(const Function& function) {
  Views out;
  // A view of a view is written when the later one is.
  std::vector<std::pair<const Variable*, const Variable*>> bases;
  const bool inKernel = function.inKernel;
  eachExpr(*function.body, [&](const Expr& expr) {
    if (expr.kind == ExprKind::Let && !expr.args.empty() && expr.args[0] && !isValueTensor(expr.variable->type) &&
        yieldsView(*expr.args[0], inKernel, out.views)) {
      out.views.insert(expr.variable);
      eachExpr(*expr.args[0], [&](const Expr& part) {
        if (part.kind == ExprKind::Var)
          bases.emplace_back(expr.variable, part.variable);
      });
    }
    const bool isWalk =
        expr.kind == ExprKind::Builtin && (expr.builtin == Builtin::Map || expr.builtin == Builtin::Fold);
    if (isWalk && isPlace(*expr.args[0]) && expr.args.back()->kind == ExprKind::Closure)
      if (const Variable* element = expr.args.back()->variables.back(); !isCopy(element->type))
        out.views.insert(element);
    if (expr.kind == ExprKind::For && isPlace(*expr.args[0]) && !isCopy(expr.variable->type))
      out.views.insert(expr.variable);
  });
  eachWrittenPlace(*function.body, [&](const Expr& place, const Expr& by) {
    const Variable* root = rootOf(place);
    const bool rebinds = !inKernel && by.kind == ExprKind::Assign && place.kind == ExprKind::Var;
    if (root && out.views.contains(root) && !rebinds)
      out.written.try_emplace(root, &by);
  });
  for (size_t i = bases.size(); i-- > 0;)
    if (auto found = out.written.find(bases[i].first);
        found != out.written.end() && out.views.contains(bases[i].second))
      out.written.try_emplace(bases[i].second, found->second);
  return out;
}

}  // namespace vortex::lang::ownership
