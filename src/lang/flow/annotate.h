// What code generation reads of an inlined kernel's control flow.
#pragma once

#include "lang/flow/check/expr_levels.h"

namespace vortex::lang::flow {

/// What the checks of `check/` found out about expressions.
struct Findings {
  const ExprLevels& levels;
  std::set<const Expr*> independentLoops;
  std::map<const Expr*, lang::Reach> reaches;
  std::map<const Expr*, lang::Guard> guards;
  std::map<const Expr*, std::vector<int64_t>> staging;        ///< Expr::ints of copies, barriers and loops
  std::map<const Expr*, std::vector<const Variable*>> reuse;  ///< SharedPlan::barriers
};

/// Fills Expr::{uniformity, needsBlock, hasPerThread, isIndependent, reach, isAfterBarrier, guard, ints} and Variable::uniformity.
void annotate(Function& kernel, const Findings& findings, const Roots& roots);

}  // namespace vortex::lang::flow
