// Branches that the arguments of a launch decide become kernels of their own. One entry point for rows of every length would be assembled for
// all of them before the first launch, and would take the registers of the hungriest; apart, a launch assembles and runs the one it needs.
#pragma once

#include "ir/vxt.h"
#include "size/expr.h"

#include <llvm/ADT/SmallVector.h>

namespace vortex::target::gpu {

struct KernelVersion {
  ir::vxt::KernelOp kernel;
  size::Expr when;  ///< the version serves launches for which no earlier one's holds; null: always
};

/// On an operation: blocks that should share a core's registers where it is part of the entry point.
inline constexpr llvm::StringLiteral kBlocksMark = "vxt.blocks";

/// On such an operation, and then on the entry point: rows are kept in registers over branches, which leave none to what is cheap to compute again.
inline constexpr llvm::StringLiteral kBranchesMark = "vxt.branches";

/// On an operation beside code for launches that versions behind serve at least as well: a version of it is left out, where there is one behind.
inline constexpr llvm::StringLiteral kElsewhereMark = "vxt.elsewhere";

/// Splits `kernel` at its long `scf.if`s whose condition is a function of extents and other integer arguments. The versions stand behind one
/// another in the kernel's module; the first keeps its name, and each is given the blocks that are marked in it (the fewest). `argumentOf` tells what a launch slot is. `hasOthers`:
/// versions for all launches stand behind these.
llvm::SmallVector<KernelVersion>
splitVersions(ir::vxt::KernelOp kernel, llvm::function_ref<size::Expr(unsigned slot)> argumentOf, bool hasOthers);

}  // namespace vortex::target::gpu
