// Neighbouring threads whose elements lie side by side.
#pragma once

#include "ir/vx.h"

#include <set>

namespace vortex::target::gpu {

/// On a region whose threads are several already.
constexpr llvm::StringLiteral kLanes = "vx.lanes";

/// Makes `count` neighbours along x one thread, in a phase whose threads run straight through: where all their masks let them pass, they load and store
/// wide (wide_accesses.h), else one by one. False, and nothing is done: some access would not be wide.
bool joinLanes(ir::KernelOp phase, int64_t count);

/// The arguments whose rows must then start and end at multiples of 16 bytes; empty: the phase is none of that kind.
std::set<unsigned> argumentsOfLanes(ir::KernelOp phase, int64_t count);

}  // namespace vortex::target::gpu
