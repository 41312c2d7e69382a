// Indices of borrowed places, compared as machine integers.
#pragma once

#include <set>

#include "lang/sema/index_values.h"

namespace vortex::lang::ownership {

class Indices {
public:
  explicit Indices(const Function& function);

  /// Can `access`, where it stands, touch an element that `lent` names? Both are an Element or Slice of the same tensor, Vec or array, and the
  /// variables in `lent` still have the values they had when it was borrowed. True when it is not known.
  bool mayOverlap(const Expr& access, const Expr& lent);
  /// The variables that an access's indices depend on.
  void variablesOf(const Expr& access, std::set<const Variable*>& out) const;

private:
  /// One dimension of an access: begin <= index < end.
  struct Extent {
    flow::ValueId begin;
    std::optional<flow::ValueId> end;  ///< none: to the end of the dimension
    bool isIndex = false;
  };
  std::vector<Extent> extentsOf(const Expr& access);
  void assumeInside(const std::vector<Extent>& extents, std::vector<flow::Condition>& out);

  IndexValues values_;
};

}  // namespace vortex::lang::ownership
