#pragma once

#include <llvm/IR/PassManager.h>

namespace vortex::msl::flatten {

/// Sums, differences and products that tell whether they overflowed, which LLVM makes of tests in the source, become arithmetic without structs.
struct ExpandOverflows : llvm::PassInfoMixin<ExpandOverflows> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager&);
};

}  // namespace vortex::msl::flatten
