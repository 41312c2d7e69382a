#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Results that the kernel's own stores fill need no zeros before: two halves of a dimension that are stored one after the other, say. Only stores outside
/// of control flow count, of pieces that follow each other along one dimension and have the others whole; what is read of such a result keeps its zeros.
void dropCoveredZeros(ir::EntryOp entry, ir::KernelOp kernel);

}  // namespace vortex::passes
