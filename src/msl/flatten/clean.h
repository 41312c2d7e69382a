// LLVM IR to LLVM IR: one function without calls but to hooks, with scalars only and memory behind pointers that pointers.h can name.
#pragma once

#include "msl/front/compile.h"

#include <llvm/IR/Function.h>

namespace vortex::msl::flatten {

/// Of a threadgroup, on every device.
inline constexpr int64_t kMostThreadsOfGroup = 1024;

/// Leaves the entry alone in its module, inlined, optimised and in scalars. Problems: recursion, a call of an unknown function.
void cleanModule(front::Unit& unit, const Request& request);
/// After pointers are gone: folds indices, single exit, no switch.
void tidyModule(llvm::Module& module);

/// A problem at an instruction; the place is that of its debug location, of the first caller that is not in the shim.
Problem problemAt(const front::Unit& unit, const llvm::Instruction* at, std::string message);
Problem problemAt(const front::Unit& unit, const llvm::DebugLoc& at, std::string message);

/// Calls of a function are part of it, and its loops with constant bounds are unrolled.
void straighten(llvm::Function& function);

}  // namespace vortex::msl::flatten
