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

/// The variable a tensor expression names without slicing; null otherwise.
const Variable* wholeTensor(const Expr& expr, const lang::Roots& roots) {
  const Expr* at = &expr;
  while (at->kind == ExprKind::Deref || at->kind == ExprKind::Ref || lang::isFieldOfElements(*at))
    at = at->args[0];
  if (at->kind != ExprKind::Var)
    return nullptr;
  const Variable* root = roots.rootOf(*at);
  return root == at->variable ? root : nullptr;
}

class LoopCheck {
public:
  LoopCheck(const Expr& loop, const lang::Roots& roots, lang::IndexValues& indices, const BodyFacts& facts)
      : loop_(loop), roots_(roots), indices_(indices), facts_(facts) {}

  bool isIndependent() {
    if (loop_.kind != ExprKind::For || loop_.args[0]->kind != ExprKind::Range || loop_.indexVariable ||
        !facts_.escapes(loop_).empty())
      return false;
    if (facts_.flags(&loop_).broke || facts_.flags(&loop_).continued)
      return false;
    const Expr& range = *loop_.args[0];
    if (range.args.size() > 2 && range.args[2] &&
        !(range.args[2]->kind == ExprKind::Int && range.args[2]->intValue == 1))
      return false;
    bool fits = true;
    walk(*loop_.args[1], [&](const Expr& expr) { fits &= visit(expr); });
    return fits && assignsOnlyInside() && storesStayApart();
  }

private:
  struct Access {
    const Expr* element;
    bool isStore;
  };

  bool visit(const Expr& expr) {
    if (expr.kind == ExprKind::Let)
      inside_.insert(expr.variable);
    if (expr.kind == ExprKind::For)
      for (const Variable* variable : {expr.variable, expr.indexVariable})
        if (variable)
          inside_.insert(variable);
    if (expr.kind == ExprKind::Element && stripRef(expr.args[0]->type)->isTensor()) {
      if (isTileType(stripRef(expr.args[0]->type)))
        return false;
      loads_.push_back(&expr);
    }
    if (expr.kind == ExprKind::Assign)
      if (const Expr* element = lang::tensorElement(*expr.args[0]); element && isMemoryTensor(element->args[0]->type))
        stores_.push_back(element);
    if (expr.kind == ExprKind::Assign && stripRef(expr.args[0]->type)->isTensor())
      return false;
    if (expr.type && isTileType(expr.type))
      return false;
    if (expr.kind == ExprKind::Builtin)
      return expr.builtin != Builtin::Print && !lang::isAtomic(expr.builtin);
    return expr.kind != ExprKind::Slice || lang::isFieldOfElements(expr);
  }

  bool assignsOnlyInside() const {
    VariableSet assigned;
    facts_.collectAssigned(*loop_.args[1], assigned);
    return llvm::all_of(assigned, [&](const Variable* variable) {
      return inside_.contains(variable) || variable->name == "returned";  // flags of calls inlined in the loop
    });
  }

  /// As machine integers: in no iteration is the subscript another number than the loop's variable.
  bool subscriptIsLoop(const Expr& element, size_t dim) const {
    if (dim + 1 >= element.args.size() || roots_.isAssigned(loop_.variable) || roots_.isWritten(loop_.variable))
      return false;
    const lang::flow::ValueId subscript = indices_.index(*element.args[dim + 1]),
                              counter = indices_.index(*loop_.variable);
    return indices_.values().equal(subscript, counter, indices_.pointOf(element)) == lang::flow::Truth::Yes;
  }

  bool storesStayApart() const {
    std::map<const Variable*, std::set<size_t>> dims;  // by stored tensor: dimensions that tell iterations apart
    for (const Expr* store : stores_) {
      const Variable* root = wholeTensor(*store->args[0], roots_);
      if (!root)
        return false;
      std::set<size_t> here;
      for (size_t dim = 0; dim + 1 < store->args.size(); ++dim)
        if (subscriptIsLoop(*store, dim))
          here.insert(dim);
      auto [entry, isNew] = dims.try_emplace(root, here);
      if (!isNew)
        std::erase_if(entry->second, [&](size_t dim) { return !here.contains(dim); });
      if (entry->second.empty())
        return false;
    }
    for (const Expr* load : loads_) {
      const Variable* root = roots_.rootOf(*load);
      auto entry = dims.find(root);
      if (entry == dims.end()) {
        if (!root)
          return false;
        continue;
      }
      if (!wholeTensor(*load->args[0], roots_))
        return false;
      std::erase_if(entry->second, [&](size_t dim) { return !subscriptIsLoop(*load, dim); });
      if (entry->second.empty())
        return false;
    }
    return !stores_.empty();
  }

  const Expr& loop_;
  const lang::Roots& roots_;
  lang::IndexValues& indices_;
  const BodyFacts& facts_;
  std::set<const Variable*> inside_;
  std::vector<const Expr*> loads_, stores_;
};

class Planner {
public:
  Planner(llvm::ArrayRef<const Expr*> statements, const lang::Roots& roots, lang::IndexValues& indices,
          const BodyFacts& facts, const VariableSet& tileResults)
      : statements_(statements), roots_(roots), indices_(indices), facts_(facts), tileResults_(tileResults) {}

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
    while (loops.size() < 3 && LoopCheck(*at, roots_, indices_, facts_).isIndependent() &&
           boundsAreFree(*at->args[0], outer)) {
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
  lang::IndexValues& indices_;
  const BodyFacts& facts_;
  const VariableSet& tileResults_;
  std::vector<const Expr*> setup_;
  std::vector<PhasePlan> phases_;
  bool mayEndEarly_ = false;
};

}  // namespace

std::vector<PhasePlan> planPhases(llvm::ArrayRef<const Expr*> statements, const lang::Roots& roots,
                                  lang::IndexValues& indices, const BodyFacts& facts, const VariableSet& tileResults) {
  return Planner(statements, roots, indices, facts, tileResults).run();
}

}  // namespace vortex::irgen
