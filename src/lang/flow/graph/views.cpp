#include "lang/flow/graph/views.h"

#include "lang/flow/graph/owned_types.h"
#include "lang/sema/expr_parts.h"

namespace vortex::lang::flow {

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
    at = &subjectOf(*at);
  }
  return at->variable;
}

void eachWrittenPlace(const Expr& expr, const std::function<void(const Expr&, const Expr&)>& found) {
  eachExpr(expr, [&](const Expr& each) {
    if (each.args.empty() || !each.args.front())
      return;
    const bool isMutableRef = each.kind == ExprKind::Ref && each.type->isMutable;
    const bool isBuiltin = each.kind == ExprKind::Builtin;
    const bool isAtomic = isBuiltin && each.builtin >= Builtin::AtomicAdd && each.builtin <= Builtin::AtomicStore &&
                          each.builtin != Builtin::AtomicLoad;
    const bool isMethod = isBuiltin && (each.builtin == Builtin::Push || each.builtin == Builtin::Pop ||
                                        each.builtin == Builtin::SortVec);
    if (isBuiltin && each.builtin == Builtin::AsyncStage)
      found(*asStage(each).destination, each);
    if (each.kind == ExprKind::Assign || isMutableRef || isAtomic || isMethod)
      found(subjectOf(each), each);
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
  case ExprKind::If: {
    const auto [condition, then, otherwise] = asIf(expr);
    return otherwise && (yieldsView(then, inKernel, views) || yieldsView(*otherwise, inKernel, views));
  }
  default: return false;
  }
}

bool isValueTensor(Type type) { return type->isTensor() && type->isValue; }

class ViewFinder {
public:
  explicit ViewFinder(const Function& function) : function_(function) {}

  Views run() {
    eachExpr(*function_.body, [&](const Expr& expr) { look(expr); });
    if (out_.views.empty())
      return {};
    eachWrittenPlace(*function_.body, [&](const Expr& place, const Expr& by) {
      const Variable* root = rootOf(place);
      const bool rebinds = !function_.inKernel && by.kind == ExprKind::Assign && place.kind == ExprKind::Var;
      if (root && out_.views.contains(root) && !rebinds)
        out_.written.try_emplace(root, &by);
    });
    for (size_t i = bases_.size(); i-- > 0;)
      if (auto found = out_.written.find(bases_[i].first);
          found != out_.written.end() && out_.views.contains(bases_[i].second))
        out_.written.try_emplace(bases_[i].second, found->second);
    return std::move(out_);
  }

private:
  void look(const Expr& expr) {
    if (expr.kind == ExprKind::Let) {
      const auto [variable, init] = asLet(expr);
      if (init && !isValueTensor(variable->type) && yieldsView(*init, function_.inKernel, out_.views)) {
        out_.views.insert(variable);
        eachExpr(*init, [&](const Expr& part) {
          if (part.kind == ExprKind::Var)
            bases_.emplace_back(expr.variable, part.variable);
        });
      }
    }
    const bool isWalk =
        expr.kind == ExprKind::Builtin && (expr.builtin == Builtin::Map || expr.builtin == Builtin::Fold);
    if (isWalk && isPlace(subjectOf(expr)) && expr.args.back()->kind == ExprKind::Closure)
      if (const Variable* element = expr.args.back()->variables.back(); !isCopy(element->type))
        out_.views.insert(element);
    if (expr.kind == ExprKind::For && isPlace(asFor(expr).list) && !isCopy(expr.variable->type))
      out_.views.insert(expr.variable);
  }

  const Function& function_;
  Views out_;
  /// A view of a view is written when the later one is.
  std::vector<std::pair<const Variable*, const Variable*>> bases_;
};

}  // namespace

Views findViews(const Function& function) { return ViewFinder(function).run(); }

}  // namespace vortex::lang::flow
