// Variables that name storage of other variables: slices, elements a `for` walks over; and which of them are written through.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "lang/sema/children.h"

namespace vortex::lang::flow {

struct Views {
  std::set<const Variable*> views;
  /// Views that are written through, and where first.
  std::map<const Variable*, const Expr*> written;
};

Views findViews(const Function& function);

/// Calls `found` for every place in the tree that is written, borrowed mutably or changed by a built-in method.
void eachWrittenPlace(const Expr& expr, const std::function<void(const Expr& place, const Expr& by)>& found);
/// Calls `found` for every expression below and including this one.
template <typename Found> void eachExpr(const Expr& expr, const Found& found) {
  found(expr);
  forEachChild(expr, [&](const Expr& child) { eachExpr(child, found); });
  if (expr.kind != ExprKind::Launch)
    return;
  for (const auto* sizes : {&expr.launch.grid, &expr.launch.block})
    for (const Expr* size : *sizes)
      eachExpr(*size, found);
}
/// The variable a place is a part of or reached through; null for other expressions.
const Variable* rootOf(const Expr& place);
bool isPlace(const Expr& expr);
/// A slice of storage (not of a value that the compiler places).
bool isStorageSlice(const Expr& expr);

}  // namespace vortex::lang::flow
