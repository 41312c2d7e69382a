// Masks bound the loops over chunks of stream_reductions.h. They are found by what they compute, not by name.
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// For the streamed loops of a phase whose scores are -inf where a condition on positions says so. Conditions are comparisons that are linear in the
/// position on the streamed axis, with factor 1 or -1, in positions on other axes, and in values that are one for the block (lengths of sequences), and
/// what `and`, `or` and `not` make of them; of others nothing is known.
///   Chunks of which no row of the block has anything left are skipped: the loop's bounds are those of the others.
///   `apart`: chunks of which every row has everything left take the scores as they are before the choice: select(whole, plain, masked), with a scalar.
/// Bounds are computed before the loop, for the numbers that the program's own integers hold where these wrap: then nothing is skipped.
void boundStreams(ir::KernelOp phase, bool apart);

}  // namespace vortex::passes
