#include "lang/syntax/unused_values.h"

#include "lang/syntax/ast_walk.h"

namespace vortex::lang::syntax {
namespace {

class UnusedValues : public AstWalker {
public:
  explicit UnusedValues(diag::DiagnosticSink& sink) : sink_(sink) {}

private:
  bool onItem(const Item* item) override {
    const auto* function = item->tryAs<FunctionItem>();
    if (function && function->body && !function->resultType)
      drop(function->body);
    return true;
  }

  bool onExpr(const Expr* expr) override {
    if (const auto* block = expr->tryAs<BlockExpr>())
      for (const Stmt* stmt : block->stmts)
        if (const auto* each = stmt->tryAs<ExprStmt>(); each && each->expr != block->tail)
          drop(each->expr);
    if (const auto* loop = expr->tryAs<ForExpr>())
      drop(loop->body);
    if (const auto* loop = expr->tryAs<WhileExpr>())
      drop(loop->body);
    if (const auto* loop = expr->tryAs<LoopExpr>())
      drop(loop->body);
    return true;
  }

  /// Nothing takes the value of the expression.
  void drop(const Expr* expr) {
    if (!expr)
      return;
    if (const auto* block = expr->tryAs<BlockExpr>())
      return drop(block->tail);
    if (const auto* choice = expr->tryAs<IfExpr>()) {
      for (const IfBranch& branch : choice->branches)
        drop(branch.body);
      return drop(choice->elseBody);
    }
    if (const auto* match = expr->tryAs<MatchExpr>()) {
      for (const MatchArm& arm : match->arms)
        drop(arm.body);
      return;
    }
    if (const auto* binary = expr->tryAs<BinaryExpr>()) {
      auto error = sink_.error("E0131", binary->opRange, "the value of this expression is not used");
      if (binary->op == BinaryOp::Eq && isPlace(binary->lhs))
        error.fix(binary->opRange, "=", "to assign, write");
      return;
    }
    if (const auto* unary = expr->tryAs<UnaryExpr>(); unary && unary->op != UnaryOp::Deref)
      sink_.error("E0131", expr->range, "the value of this expression is not used")
          .help("to continue the line before, put the operator at its end");
  }

  static bool isPlace(const Expr* expr) {
    return expr->is<NameExpr>() || expr->is<MemberExpr>() || expr->is<IndexExpr>() || expr->is<TupleMemberExpr>();
  }

  diag::DiagnosticSink& sink_;
};

}  // namespace

void checkUnusedValues(const Item* item, diag::DiagnosticSink& sink) { UnusedValues(sink).walk(item); }

}  // namespace vortex::lang::syntax
