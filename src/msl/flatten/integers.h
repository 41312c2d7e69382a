// LLVM's passes make integers of any width, vx has those of 1, 8, 16, 32 and 64 bits.
#pragma once

#include <llvm/IR/Function.h>

namespace vortex::msl::flatten {

/// Computes integers of other widths in the next wider one, with zeros above their bits. What it does not know stays as it is.
void widenIntegers(llvm::Function& function);

}  // namespace vortex::msl::flatten
