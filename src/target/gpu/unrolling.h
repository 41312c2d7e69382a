// Loops of threads over memory, several iterations at a time.
#pragma once

#include "ir/vx.h"

namespace vortex::target::gpu {

/// Unrolls the loops of thread regions that load little per iteration and wait for nothing: the loads of several iterations are in flight together,
/// ahead of the first use. Conditions of such a loop become masks of its accesses. Done once for a phase, however often it is asked.
void unrollStreams(ir::KernelOp phase);

/// On a loop that only long rows take: what is left of them runs one by one.
constexpr llvm::StringLiteral kLongRows = "vx.long_rows";

/// Iterations that stand one after the other: their loads first, and quotients by one divisor together.
void arrangeTogether(mlir::Block& block);

}  // namespace vortex::target::gpu
