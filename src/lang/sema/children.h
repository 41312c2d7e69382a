// The direct parts of a checked expression.
#pragma once

#include "lang/sema/program.h"

namespace vortex::lang {

/// Calls visit(const Expr&) for each argument, then for each bound of a slice that is written.
template <typename Visit> void forEachChild(const Expr& expr, Visit&& visit) {
  for (const Expr* arg : expr.args)
    if (arg)
      visit(*arg);
  for (const SliceDim& slice : expr.slices)
    for (const Expr* part : {slice.begin, slice.end})
      if (part)
        visit(*part);
}

}  // namespace vortex::lang
