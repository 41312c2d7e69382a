// Sequential programs over whole tensors: what is a launch of its own.
#pragma once

#include "irgen/facts.h"

#include "lang/sema/kernel/roots.h"

#include <vector>

namespace vortex::irgen {

/// One grid launch of a kernel that names no threads.
struct PhasePlan {
  /// Scalars and names of memory that this phase needs from the statements before it; free to be evaluated again.
  std::vector<const lang::Expr*> setup;
  std::vector<const lang::Expr*> statements;  ///< whole-tensor operations and code in program order …
  std::vector<const lang::Expr*>
      loops;  ///< … or perfectly nested loops, outermost first, whose iterations are independent
};

/// Phases whose effects in order are those of the statements. One phase with all statements when nothing can be told apart.
///
/// `tileResults`: named results that are values, so returning them stores.
///
/// A loop is spread when its iterations do not meet (Expr::isIndependent) and each ends by itself.
std::vector<PhasePlan> planPhases(llvm::ArrayRef<const lang::Expr*> statements, const lang::Roots& roots,
                                  const BodyFacts& facts, const VariableSet& tileResults);

}  // namespace vortex::irgen
