// Rows that several loops of a block's threads go over, in registers.
#pragma once

#include "ir/vx.h"

namespace vortex::target::gpu {

/// On a phase with kept rows.
constexpr llvm::StringLiteral kKeptRows = "vx.kept_rows";
/// Of a thread of such a phase, at most: the loops for long rows, written out for many loads at a time, would take more and leave cores half empty.
constexpr int64_t kRegistersWithRows = 48;

/// Loops of thread regions over the same elements: where a later one loads or computes by costly functions what an earlier one has, and its threads
/// make few iterations, the values stay in registers. Such iterations are written out, all loads of kept values first, their conditions as masks;
/// longer rows go on through the loops. The order of operations stays, and so do the bits. True: there is something of that kind.
bool keepRows(ir::KernelOp phase);

}  // namespace vortex::target::gpu
