// Sequential programs over whole tensors: which outermost loops have independent iterations.
#pragma once

#include "irgen/facts.h"

#include "lang/sema/index_values.h"
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
/// A loop is spread when its iterations can be seen not to meet: each tensor it stores to has a dimension that every store and every load
/// of it in the loop subscripts with exactly the loop's variable, and no variable from outside is assigned.
std::vector<PhasePlan> planPhases(llvm::ArrayRef<const lang::Expr*> statements, const lang::Roots& roots,
                                  lang::IndexValues& indices, const BodyFacts& facts, const VariableSet& tileResults);

}  // namespace vortex::irgen
