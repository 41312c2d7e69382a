#include "lang/flow/race/thread_code.h"

#include "lang/sema/children.h"

namespace vortex::lang::flow {
namespace {

/// Its statements may be the block's and the threads' in turn.
bool holdsStatements(ExprKind kind) {
  switch (kind) {
  case ExprKind::Block:
  case ExprKind::If:
  case ExprKind::For:
  case ExprKind::While:
  case ExprKind::Loop:
  case ExprKind::Inline: return true;
  default: return false;
  }
}

void collect(const Expr& expr, bool isOfThreads, std::unordered_set<const Expr*>& out) {
  // Without anything for the block a statement is the threads' as a whole.
  isOfThreads = isOfThreads || (expr.hasPerThread && !(expr.needsBlock && holdsStatements(expr.kind)));
  if (isOfThreads)
    out.insert(&expr);
  forEachChild(expr, [&](const Expr& child) { collect(child, isOfThreads, out); });
}

}  // namespace

std::unordered_set<const Expr*> threadCode(const Function& kernel) {
  std::unordered_set<const Expr*> result;
  collect(*kernel.body, false, result);
  return result;
}

}  // namespace vortex::lang::flow
