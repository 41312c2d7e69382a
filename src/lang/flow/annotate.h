// What code generation reads of an inlined kernel's control flow.
#pragma once

#include "lang/flow/check/expr_levels.h"

namespace vortex::lang::flow {

/// Fills Expr::{uniformity, needsBlock, hasPerThread} and Variable::uniformity.
void annotate(Function& kernel, const ExprLevels& levels, const Roots& roots);

}  // namespace vortex::lang::flow
