// One walk along the control flow. Whole tensors are tracked, not elements; a write by some threads counts as a write, since which
// threads is a question of races and of `--check`. Loops are taken to run at least once, and their first iteration is the one walked:
// nothing is written later that it could read.
#include "lang/sema/kernel/initialisation.h"

#include "base/text.h"

#include <algorithm>

namespace vortex::lang {
namespace {

/// What may have happened to a tensor: one bit per possibility.
enum Content : uint8_t { kUnwritten = 1, kWritten = 2 };

struct Initialised {
  std::map<const Variable*, uint8_t> contents;
  bool ends = false;  ///< control does not get here
};

bool isStorage(Type type) {
  while (type->kind == TypeKind::Array)
    type = type->elem;
  return type->isTensor() && !type->isValue && (type->space == Space::Shared || type->space == Space::Local);
}

class Walk {
public:
  Walk(const Roots& roots, diag::DiagnosticSink& sink) : roots_(roots), sink_(sink) {}

  /// Tensors that copies are staged into are followed by checkStaging.
  void leaveOutStaged(const Expr& expr) {
    const bool stages = !expr.args.empty() && expr.args.back() && expr.args.back()->kind == ExprKind::Builtin &&
                        expr.args.back()->builtin == Builtin::Stage;
    if (stages && expr.kind == ExprKind::Let)
      staged_.insert(expr.variable);
    if (stages && expr.kind == ExprKind::Assign)
      staged_.insert(roots_.rootOf(*expr.args[0]));
    if (expr.kind == ExprKind::Builtin && expr.builtin == Builtin::AsyncStage)
      staged_.insert(roots_.rootOf(*expr.args[1]));
    for (const Expr* arg : expr.args)
      if (arg)
        leaveOutStaged(*arg);
  }

  void visit(const Expr& expr) {
    switch (expr.kind) {
    case ExprKind::Var:
    case ExprKind::Field:
    case ExprKind::Element:
    case ExprKind::Slice:
    case ExprKind::Deref: visitIndices(expr); return read(expr);
    case ExprKind::Ref:
      visitIndices(*expr.args[0]);
      return expr.type->isMutable ? write(*expr.args[0]) : read(*expr.args[0]);
    case ExprKind::Let: return let(expr);
    case ExprKind::Assign:
      visit(*expr.args[1]);
      visitIndices(*expr.args[0]);
      if (expr.hasOp)
        read(*expr.args[0]);
      return write(*expr.args[0]);
    case ExprKind::Builtin: return builtin(expr);
    case ExprKind::If: return branches(expr);
    case ExprKind::While:
    case ExprKind::Loop:
    case ExprKind::For: return loop(expr);
    case ExprKind::Break:
    case ExprKind::Continue:
    case ExprKind::Return:
      visitArgs(expr);
      state_.ends = true;
      return;
    case ExprKind::Inline:
      visitArgs(expr);
      state_.ends = false;  // what returned continues here
      return;
    default: return visitArgs(expr);
    }
  }

private:
  void visitArgs(const Expr& expr) {
    for (const Expr* arg : expr.args)
      if (arg)
        visit(*arg);
  }

  void visitIndices(const Expr& place) {
    const Expr* at = &place;
    while (true) {
      for (size_t i = 1; at->kind == ExprKind::Element && i < at->args.size(); ++i)
        visit(*at->args[i]);
      for (const SliceDim& slice : at->slices) {
        if (slice.begin)
          visit(*slice.begin);
        if (slice.end)
          visit(*slice.end);
      }
      const bool isPart = at->kind == ExprKind::Element || at->kind == ExprKind::Slice || at->kind == ExprKind::Field ||
                          at->kind == ExprKind::Deref || at->kind == ExprKind::Ref;
      if (!isPart)
        break;
      at = at->args[0];
    }
    if (at->kind != ExprKind::Var)
      visit(*at);
  }

  void let(const Expr& expr) {
    const Expr* init = expr.args.empty() ? nullptr : expr.args[0];
    if (!init) {
      if (isStorage(expr.variable->type) && !expr.variable->isResultStorage && !staged_.contains(expr.variable))
        state_.contents[expr.variable] = kUnwritten;
      return;
    }
    const bool isAlias = init->kind == ExprKind::Ref || init->kind == ExprKind::Slice ||
                         ((init->kind == ExprKind::Var || init->kind == ExprKind::Deref) &&
                          (init->type->kind == TypeKind::Ref || init->type->isTensor()));
    if (isAlias && !(expr.variable->type->isTensor() && expr.variable->type->isValue))
      visitIndices(*init);
    else
      visit(*init);
  }

  void builtin(const Expr& expr) {
    if (expr.builtin == Builtin::Extent)
      return;
    if (expr.builtin == Builtin::AsyncStage) {
      visit(*expr.args[0]);
      visitIndices(*expr.args[1]);
      return write(*expr.args[1]);
    }
    if (!isAtomic(expr.builtin))
      return visitArgs(expr);
    for (size_t i = 1; i < expr.args.size(); ++i)
      visit(*expr.args[i]);
    visitIndices(*expr.args[0]);
    if (expr.builtin != Builtin::AtomicStore)
      read(*expr.args[0]);
    if (expr.builtin != Builtin::AtomicLoad)
      write(*expr.args[0]);
  }

  void branches(const Expr& expr) {
    visit(*expr.args[0]);
    const bool perThread = expr.args[0]->uniformity == Uniformity::PerThread;
    const Initialised before = state_;
    ++conditions_;
    visit(*expr.args[1]);
    Initialised then = std::move(state_);
    state_ = before;
    if (expr.args.size() > 2 && expr.args[2])
      visit(*expr.args[2]);
    --conditions_;
    if (perThread) {
      then.ends = state_.ends = before.ends;  // the other threads go on
      for (auto& [variable, content] : state_.contents)
        if (auto other = then.contents.find(variable); other != then.contents.end())
          content = std::max(content, other->second);
      return;
    }
    join(then);
  }

  void join(const Initialised& other) {
    if (other.ends)
      return;
    if (state_.ends) {
      state_ = other;
      return;
    }
    for (auto& [variable, content] : state_.contents)
      if (auto found = other.contents.find(variable); found != other.contents.end())
        content |= found->second;
  }

  void loop(const Expr& expr) {
    ++loopDepth_;
    visitArgs(expr);
    --loopDepth_;
    state_.ends = false;
  }

  void read(const Expr& place) {
    const Variable* root = roots_.rootOf(place);
    auto found = root ? state_.contents.find(root) : state_.contents.end();
    if (found == state_.contents.end() || state_.ends || !(found->second & kUnwritten))
      return;
    // In a loop a condition may say "not in the first iteration".
    if (loopDepth_ > 0 && conditions_ > 0)
      return;
    const bool isCertain = found->second == kUnwritten;
    found->second = kWritten;  // one report each
    auto builder = isCertain
                       ? sink_.error("E0525", place.range,
                                     base::concat("`", root->name, "` is read here, but nothing has written it yet"))
                       : sink_.warning("W0525", place.range,
                                       base::concat("`", root->name, "` may be read here before it is written"));
    builder.primary("read here");
    builder.label(root->range, "declared here without a value");
    if (isCertain)
      builder.help(root->type->isTensor() && root->type->space == Space::Local
                       ? "give it a value where it is declared: `= zeros()`"
                       : "write it, then wait with `sync_block()`, before it is read");
    else
      builder.help("write it on both ways, or lift the check with `@unchecked(init)`");
  }

  void write(const Expr& place) {
    const Variable* root = roots_.rootOf(place);
    if (auto found = root ? state_.contents.find(root) : state_.contents.end(); found != state_.contents.end())
      found->second = kWritten;
  }

  const Roots& roots_;
  diag::DiagnosticSink& sink_;
  std::set<const Variable*> staged_;
  Initialised state_;
  uint32_t conditions_ = 0, loopDepth_ = 0;
};

}  // namespace

void checkInitialisation(const Function& kernel, const Roots& roots, diag::DiagnosticSink& sink) {
  if (kernel.kernel && kernel.kernel->uncheckedInit)
    return;
  Walk walk(roots, sink);
  walk.leaveOutStaged(*kernel.body);
  walk.visit(*kernel.body);
}

}  // namespace vortex::lang
