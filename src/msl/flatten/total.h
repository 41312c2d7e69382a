// Integers whose operations LLVM leaves undefined in places, where vx defines them: shifts by the width, conversions out of range, division by zero.
#pragma once

#include "msl/front/compile.h"

#include <llvm/IR/PassManager.h>

namespace vortex::msl::flatten {

/// Before any pass sees Clang's code: a value that LLVM calls poison would take what is computed from it along. Shifts get masks, conversions
/// saturate, sums, differences and products wrap, and divisions by what is no constant become hooks. A problem for what Clang has folded to poison already.
void makeTotal(front::Unit& unit);

/// Divisions by what has turned out to be safe are instructions again.
struct SettleDivisions : llvm::PassInfoMixin<SettleDivisions> {
  static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

/// A division by zero that every thread comes to.
bool refuseDivisionsByZero(front::Unit& unit);

}  // namespace vortex::msl::flatten
