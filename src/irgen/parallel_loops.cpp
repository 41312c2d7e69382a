#include "irgen/parallel_loops.h"

#include <map>
#include <set>

namespace vortex::irgen {

using lang::Builtin;
using lang::Expr;
using lang::ExprKind;
using lang::Variable;

namespace {

template <typename Visit> void walk(const Expr& expr, Visit visit) {
  visit(expr);
  for (const Expr* child : children(expr))
    walk(*child, visit);
}

/// Each iteration can be generated as the work of one thread.
bool isIndependent(const Expr& loop, const BodyFacts& facts) {
  const JumpFlags& flags = facts.flags(&loop);
  return loop.isIndependent && facts.escapes(loop).empty() && !flags.broke && !flags.continued;
}

class Planner {
public:
  Planner(llvm::ArrayRef<const Expr*> statements, const lang::Roots& roots, const BodyFacts& facts,
          const VariableSet& tileResults)
      : statements_(statements), roots_(roots), facts_(facts), tileResults_(tileResults) {}

  std::vector<PhasePlan> run() {
    for (size_t i = 0; i < statements_.size(); ++i)
      place(*statements_[i], i + 1 == statements_.size());
    bool spread = llvm::any_of(phases_, [](const PhasePlan& phase) { return !phase.loops.empty(); });
    if (!spread || !isClosed())
      return {{{}, std::vector<const Expr*>(statements_.begin(), statements_.end()), {}}};
    return std::move(phases_);
  }

private:
  void place(const Expr& statement, bool isLast) {
    if (isSetup(statement)) {
      setup_.push_back(&statement);
      return;
    }
    bool returnsStorage = isLast && statement.kind == ExprKind::Return && facts_.escapes(statement).size() == 1 &&
                          (statement.args.empty() || statement.args[0]->kind == ExprKind::Var);
    if (returnsStorage && (statement.args.empty() || (statement.args[0]->variable->isResultStorage &&
                                                      !tileResults_.contains(statement.args[0]->variable))))
      return;
    std::vector<const Expr*> loops = nest(statement);
    if (!loops.empty()) {
      phases_.push_back({setup_, {}, loops});
      return;
    }
    if (phases_.empty() || !phases_.back().loops.empty())
      phases_.push_back({setup_, {}, {}});
    phases_.back().statements.push_back(&statement);
    phases_.back().setup = setup_;
    mayEndEarly_ |= !facts_.escapes(statement).empty() && !isLast;
  }

  /// Declarations that give the same value whenever they are evaluated.
  bool isSetup(const Expr& statement) const {
    if (statement.kind != ExprKind::Let || roots_.isAssigned(statement.variable))
      return false;
    if (statement.variable->isResultStorage)
      return statement.args.empty() ||
             (statement.args[0]->kind == ExprKind::Builtin && statement.args[0]->builtin == Builtin::Zeros);
    if (statement.args.empty())
      return false;
    bool pure = true;
    walk(*statement.args[0], [&](const Expr& expr) {
      switch (expr.kind) {
      case ExprKind::Element:
        pure &= !roots_.isWritten(roots_.rootOf(expr)) && !isTileType(stripRef(expr.args[0]->type));
        break;
      case ExprKind::Builtin: pure &= expr.builtin < Builtin::Zeros || expr.builtin == Builtin::Extent; break;
      case ExprKind::Assign:
      case ExprKind::For:
      case ExprKind::While:
      case ExprKind::Loop:
      case ExprKind::Dot: pure = false; break;
      default: pure &= !(expr.type && isTileType(expr.type));
      }
    });
    return pure;
  }

  std::vector<const Expr*> nest(const Expr& statement) const {
    std::vector<const Expr*> loops;
    const Expr* at = &statement;
    std::set<const Variable*> outer;
    while (loops.size() < 3 && isIndependent(*at, facts_) && boundsAreFree(*at->args[0], outer)) {
      loops.push_back(at);
      outer.insert(at->variable);
      const Expr* body = at->args[1];
      while (body->kind == ExprKind::Block && body->args.size() == 1)
        body = body->args[0];
      at = body;
    }
    return loops;
  }

  static bool boundsAreFree(const Expr& range, const std::set<const Variable*>& outer) {
    bool isFree = true;
    walk(range, [&](const Expr& expr) { isFree &= !(expr.kind == ExprKind::Var && outer.contains(expr.variable)); });
    return isFree;
  }

  /// No phase uses a variable of another.
  bool isClosed() const {
    if (mayEndEarly_)
      return false;
    std::map<const Variable*, size_t> home;
    for (const Expr* statement : setup_)
      home[statement->variable] = SIZE_MAX;
    auto forEach = [&](auto visit) {
      for (size_t i = 0; i < phases_.size(); ++i)
        for (const std::vector<const Expr*>* list : {&phases_[i].statements, &phases_[i].loops})
          if (!list->empty())
            for (const Expr* statement :
                 list == &phases_[i].loops ? llvm::ArrayRef(list->front()) : llvm::ArrayRef(*list))
              walk(*statement, [&](const Expr& expr) { visit(i, expr); });
    };
    forEach([&](size_t phase, const Expr& expr) {
      if (expr.kind == ExprKind::Let)
        home.try_emplace(expr.variable, phase);
    });
    bool closed = true;
    forEach([&](size_t phase, const Expr& expr) {
      if (expr.kind != ExprKind::Var)
        return;
      auto found = home.find(expr.variable);
      closed &= found == home.end() || found->second == SIZE_MAX || found->second == phase;
    });
    return closed;
  }

  llvm::ArrayRef<const Expr*> statements_;
  const lang::Roots& roots_;
  const BodyFacts& facts_;
  const VariableSet& tileResults_;
  std::vector<const Expr*> setup_;
  std::vector<PhasePlan> phases_;
  bool mayEndEarly_ = false;
};

}  // namespace

std::vector<PhasePlan> planPhases(llvm::ArrayRef<const Expr*> statements, const lang::Roots& roots,
                                  const BodyFacts& facts, const VariableSet& tileResults) {
  return Planner(statements, roots, facts, tileResults).run();
}

}  // namespace vortex::irgen
