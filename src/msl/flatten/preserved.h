// What passes that replace instructions leave as it was.
#pragma once

#include <llvm/IR/PassManager.h>

namespace vortex::msl::flatten {

/// All analyses where nothing `isChanged`, else those of control flow.
inline llvm::PreservedAnalyses preservedWhere(bool isChanged) {
  if (!isChanged)
    return llvm::PreservedAnalyses::all();
  llvm::PreservedAnalyses kept;
  kept.preserveSet<llvm::CFGAnalyses>();
  return kept;
}

}  // namespace vortex::msl::flatten
