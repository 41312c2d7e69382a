// The order in which a phase's blocks run.
#pragma once

#include "ir/vx.h"

namespace vortex::target::cpu {

/// Whether blocks of one column read the same memory in a loop, as those of a product do: `for k: sum += a[y, k] * b[k, x]`. They run one
/// after another then, in bands of a few rows, so that what they share comes from a cache. Never of a phase whose blocks could notice:
/// one that prints, or has atomics by which blocks wait for earlier ones.
bool runsInBands(ir::KernelOp phase);

}  // namespace vortex::target::cpu
