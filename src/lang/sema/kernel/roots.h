#pragma once

#include "lang/sema/program.h"

#include <map>
#include <set>

namespace vortex::lang {

/// Which variable's storage a place belongs to, following references and slices bound by `let`, and which storages a kernel writes.
class Roots {
public:
  explicit Roots(const Function& kernel);

  /// The variable that owns the storage; null for temporaries.
  const Variable* rootOf(const Expr& place) const;
  bool isWritten(const Variable* root) const { return root && written_.contains(root); }
  /// The initialiser of a variable that is assigned exactly once, by its `let`; null otherwise.
  const Expr* soleValue(const Variable* variable) const;
  bool isAssigned(const Variable* variable) const { return assigned_.contains(variable); }

private:
  void collect(const Expr& expr);

  std::map<const Variable*, const Expr*> initialisers_;
  std::set<const Variable*> assigned_;
  std::set<const Variable*> written_;
  std::vector<const Expr*> stores_;
};

/// The element of a tensor that a place is, or is a part of (`p[i].velocity.x`); null for other places.
const Expr* tensorElement(const Expr& place);
/// `p.x`: the view of one field of all elements.
inline bool isFieldOfElements(const Expr& expr) { return expr.kind == ExprKind::Slice && !expr.ints.empty(); }

bool isAtomic(Builtin builtin);
bool isWarpOperation(Builtin builtin);
/// One value of all threads of the block, behind a barrier.
bool isBlockReduction(Builtin builtin);
/// Looks through integer casts that keep the 64-bit value and through variables with one value. Never null for non-null input.
const Expr* stripIntegerCasts(const Expr* expr, const Roots& roots);
/// The same, also through parts of tuples, structs and arrays, references, and calls that return in one place.
const Expr* definingValue(const Expr* expr, const Roots& roots);

}  // namespace vortex::lang
