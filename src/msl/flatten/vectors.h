#pragma once

#include <llvm/IR/Function.h>

namespace vortex::msl::flatten {

/// Bits of a scalar read as a vector and back become shifts, which LLVM's scalarizer leaves as casts.
void splitCasts(llvm::Function& function);

}  // namespace vortex::msl::flatten
