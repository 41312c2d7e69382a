#include "lang/flow/annotate.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "lang/sema/expr_parts.h"

namespace vortex::lang::flow {
namespace {

lang::Uniformity uniformityOf(Level level) {
  return level == Level::Block ? lang::Uniformity::Uniform : lang::Uniformity::PerThread;
}

class Annotation {
public:
  Annotation(const Findings& findings, const Roots& roots)
      : findings_(findings), levels_(findings.levels), roots_(roots) {}

  void visit(Expr& expr) const {
    const Level level = levels_.of(expr), control = levels_.controlOf(expr).level;
    expr.uniformity = uniformityOf(level);
    expr.hasPerThread = isPerThread(expr, level, control);
    expr.isIndependent = findings_.independentLoops.contains(&expr);
    if (auto found = findings_.reaches.find(&expr); found != findings_.reaches.end())
      expr.reach = found->second;
    expr.isAfterBarrier = findings_.reuse.contains(&expr);
    expr.needsBlock = needsBlock(expr, level, control);
    if (auto found = findings_.guards.find(&expr);
        found != findings_.guards.end() && expr.guard == lang::Guard::Guarded)
      expr.guard = found->second;
    if (auto found = findings_.staging.find(&expr); found != findings_.staging.end())
      expr.ints = found->second;
    const auto include = [&](Expr* part) {
      if (!part)
        return;
      visit(*part);
      expr.needsBlock |= part->needsBlock;
      expr.hasPerThread |= part->hasPerThread;
    };
    for (Expr* arg : expr.args)
      include(arg);
    for (const SliceDim& slice : expr.slices)
      for (Expr* part : {slice.begin, slice.end})
        include(part);
  }

private:
  bool needsBlock(const Expr& expr, Level level, Level control) const {
    if (isTile(expr.type) && expr.kind != ExprKind::Var && expr.kind != ExprKind::Block)
      return true;
    if (isTileWork(expr))
      return true;
    const bool isOfBlock = level == Level::Block && control == Level::Block;
    switch (expr.kind) {
    case ExprKind::Let: {
      const auto [variable, value] = asLet(expr);
      return expr.isAfterBarrier || (variable->type->isTensor() && variable->type->space == Space::Shared && !value);
    }
    case ExprKind::Assign: return !levels_.valueRoot(asAssign(expr).place) && level == Level::Block;
    case ExprKind::Element: return isOfBlock && roots_.isWritten(roots_.rootOf(expr));
    case ExprKind::Builtin:
      if (expr.builtin == Builtin::SyncBlock || expr.builtin == Builtin::SyncGrid || isBlockReduction(expr.builtin))
        return true;
      if (expr.builtin == Builtin::Print || expr.builtin == Builtin::Assert)
        return isOfBlock;
      return !expr.args.empty() && isTile(subjectOf(expr).type);
    default: return false;
    }
  }

  bool isPerThread(const Expr& expr, Level level, Level control) const {
    if (level != Level::Block)
      return true;
    switch (expr.kind) {
    case ExprKind::Let: return levels_.of(expr.variable) != Level::Block;
    case ExprKind::Assign: {
      const Variable* root = levels_.valueRoot(asAssign(expr).place);
      return root && levels_.of(root) != Level::Block;
    }
    case ExprKind::Break:
    case ExprKind::Continue:
    case ExprKind::Return: return control != Level::Block;
    case ExprKind::Builtin: return isWarpOperation(expr.builtin);
    default: return false;
    }
  }

  const Findings& findings_;
  const ExprLevels& levels_;
  const Roots& roots_;
};

/// The code of a function that stays one: each thread runs it, from calls of which the least that is known holds.
void setPerThread(Expr& expr) {
  expr.uniformity = lang::Uniformity::PerThread;
  expr.reach = lang::Reach::Near;
  for (Expr* arg : expr.args)
    if (arg)
      setPerThread(*arg);
}

void joinReach(const Expr& call, Expr& kept) {
  VORTEX_CHECK(call.kind == kept.kind && call.args.size() == kept.args.size(), "a call differs from its function");
  kept.reach = std::min(kept.reach, call.reach);
  for (size_t i = 0; i < call.args.size(); ++i)
    if (call.args[i])
      joinReach(*call.args[i], *kept.args[i]);
}

void settleCalls(const Expr& expr) {
  if (expr.kind == ExprKind::Inline && expr.function && expr.function->staysFunction)
    joinReach(*expr.args.back(), *expr.function->body->args.back());
  for (const Expr* arg : expr.args)
    if (arg)
      settleCalls(*arg);
}

void settleKept(Function& kernel) {
  for (const auto& kept : kernel.kept) {
    setPerThread(*kept->body);
    for (const auto& variable : kept->variables)
      variable->uniformity = lang::Uniformity::PerThread;
  }
  settleCalls(*kernel.body);
}

std::string textOf(const Variable& tensor, const std::vector<const Variable*>& before) {
  std::vector<std::string> names;
  for (const Variable* other : before)
    names.push_back(other == &tensor ? "the iteration before" : base::concat("`", other->name, "`"));
  return base::concat("added before `", tensor.name, "`, which takes bytes of ", base::join(names, ", "));
}

}  // namespace

void annotate(Function& kernel, const Findings& findings, const Roots& roots) {
  Annotation(findings, roots).visit(*kernel.body);
  settleKept(kernel);
  for (const auto& variable : kernel.variables)
    variable->uniformity = uniformityOf(findings.levels.of(variable.get()));
  for (const auto& [let, tensors] : findings.reuse)
    kernel.notes.push_back({"barrier", let->range, textOf(*let->variable, tensors)});
  std::sort(kernel.notes.begin(), kernel.notes.end(),
            [](const BuildNote& a, const BuildNote& b) { return a.range.begin < b.range.begin; });
}

}  // namespace vortex::lang::flow
