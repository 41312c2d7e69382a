#include "lang/flow/check/endless.h"

#include <algorithm>
#include <set>
#include <vector>

#include "lang/sema/children.h"
#include "lang/sema/expr_parts.h"
#include "lang/sema/integers.h"

namespace vortex::lang::flow {
namespace {

/// What a place is part of; null where a reference leads there.
const Variable* rootOf(const Expr& place) {
  const Expr* at = &place;
  while (at->kind == ExprKind::Field || at->kind == ExprKind::Element || at->kind == ExprKind::Slice)
    at = at->args.front();
  return at->kind == ExprKind::Var ? at->variable : nullptr;
}

bool isNumber(Type type) { return type && (type->kind == TypeKind::Scalar || type->kind == TypeKind::Enum); }

class EndlessLoops {
public:
  EndlessLoops(const Function& function, std::vector<source::SourceRange>& reported, diag::DiagnosticSink& sink)
      : isKernel_(function.kernel.has_value()), reported_(reported), sink_(sink) {
    noteLent(*function.body, false);
    visit(*function.body);
  }

private:
  /// What a reference or a closure may change.
  void noteLent(const Expr& expr, bool isInClosure) {
    const bool isLent = expr.kind == ExprKind::Ref && expr.type->isMutable;
    if (isLent || (isInClosure && expr.kind == ExprKind::Assign))
      lent_.insert(rootOf(*expr.args.front()));
    forEachChild(expr, [&](const Expr& child) { noteLent(child, isInClosure || expr.kind == ExprKind::Closure); });
  }

  void visit(const Expr& expr) {
    if (expr.kind == ExprKind::While || expr.kind == ExprKind::Loop)
      check(expr);
    forEachChild(expr, [&](const Expr& child) { visit(child); });
  }

  void check(const Expr& loop) {
    const auto [condition, body] = asLoop(loop);
    std::set<const Variable*> read;
    const bool isTrue = !condition || isAlwaysTrue(*condition);
    const bool isEndless = isTrue || (isMadeOfNumbers(*condition, read) && !read.empty());
    const bool mayBeMeant = isTrue && !isKernel_;  // by a program that runs until it is stopped
    if (!isEndless || mayBeMeant || mayLeave(body, false) || assignsOneOf(body, read) || !isNew(loop))
      return;
    if (isTrue)
      return reportNoWayOut(loop, condition);
    std::string names;
    for (const Variable* each : read)
      names += (names.empty() ? "`" : ", `") + each->name + "`";
    sink_.error("E0455", condition->range, "this loop never ends once it goes round: nothing in it changes " + names)
        .primary("it stays what it is")
        .label(beginOf(loop), "the loop")
        .help("change in the loop what its condition depends on, or leave it by `break`");
  }

  void reportNoWayOut(const Expr& loop, const Expr* condition) {
    auto error = sink_.error("E0455", beginOf(loop), "this loop never ends");
    error.primary("nothing in it leaves it").help("leave it by `break` or `return`, or count by `for`");
    if (condition && condition->kind != ExprKind::Int)
      error.label(condition->range, "every number of its type makes this true");
  }

  static source::SourceRange beginOf(const Expr& loop) { return {loop.range.file, loop.range.begin, loop.range.begin}; }

  /// A generic function is there once for each of its instances.
  bool isNew(const Expr& loop) {
    if (std::find(reported_.begin(), reported_.end(), loop.range) != reported_.end())
      return false;
    reported_.push_back(loop.range);
    return true;
  }

  /// Also a comparison with an end of the numbers that the type has: `i >= 0` without a sign.
  static bool isAlwaysTrue(const Expr& condition) {
    const bool isGe = condition.kind == ExprKind::Binary && condition.binaryOp == BinaryOp::Ge;
    if (!isGe && (condition.kind != ExprKind::Binary || condition.binaryOp != BinaryOp::Le))
      return condition.kind == ExprKind::Int && condition.intValue != 0;
    const Expr &more = *condition.args[isGe ? 0 : 1], &less = *condition.args[isGe ? 1 : 0];
    return more.type->kind == TypeKind::Scalar && isInteger(more.type->scalar) &&
           ((less.kind == ExprKind::Int && less.intValue <= lowest(more.type->scalar)) ||
            (more.kind == ExprKind::Int && more.intValue >= highest(more.type->scalar)));
  }

  /// Of variables that nothing lends out, extents and literals.
  bool isMadeOfNumbers(const Expr& expr, std::set<const Variable*>& read) const {
    switch (expr.kind) {
    case ExprKind::Int:
    case ExprKind::Float:
    case ExprKind::DimValue: return true;
    case ExprKind::Var:
    case ExprKind::Field: {
      const Expr* root = &expr;
      while (root->kind == ExprKind::Field)
        root = root->args.front();
      return isNumber(expr.type) && root->kind == ExprKind::Var && !lent_.contains(root->variable) &&
             (read.insert(root->variable), true);
    }
    case ExprKind::Unary:
    case ExprKind::Binary:
    case ExprKind::Cast: {
      bool all = isNumber(expr.type);
      forEachChild(expr, [&](const Expr& child) { all = all && isMadeOfNumbers(child, read); });
      return all;
    }
    default: return false;
    }
  }

  /// Out of the loop, or out of the program. `isInner`: in a loop inside of it, whose `break` leaves that one.
  static bool mayLeave(const Expr& expr, bool isInner) {
    if (expr.kind == ExprKind::Return || (expr.kind == ExprKind::Break && !isInner) ||
        (expr.kind == ExprKind::Builtin && expr.builtin == Builtin::Assert))
      return true;
    const bool isLoop = expr.kind == ExprKind::While || expr.kind == ExprKind::Loop || expr.kind == ExprKind::For;
    bool leaves = false;
    forEachChild(expr, [&](const Expr& child) { leaves = leaves || mayLeave(child, isInner || isLoop); });
    return leaves;
  }

  static bool assignsOneOf(const Expr& expr, const std::set<const Variable*>& variables) {
    if (expr.kind == ExprKind::Assign) {
      const Variable* root = rootOf(asAssign(expr).place);
      if (root ? variables.contains(root) : asAssign(expr).place.kind == ExprKind::MakeTuple)
        return true;
    }
    bool assigns = false;
    forEachChild(expr, [&](const Expr& child) { assigns = assigns || assignsOneOf(child, variables); });
    return assigns;
  }

  const bool isKernel_;
  std::vector<source::SourceRange>& reported_;
  diag::DiagnosticSink& sink_;
  std::set<const Variable*> lent_;
};

}  // namespace

void checkEndless(const Program& program, diag::DiagnosticSink& sink) {
  std::vector<source::SourceRange> reported;
  for (const auto& function : program.functions)
    if (function->body)
      EndlessLoops(*function, reported, sink);
}

}  // namespace vortex::lang::flow
