#pragma once

#include "hvm/eval/machine.h"

namespace vortex::hvm {

/// What `left === right` becomes when both are values and neither is &{}, *, a superposition or a priority mark.
Term compareValues(Machine& machine, Term left, Term right, uint64_t freshName);

}  // namespace vortex::hvm
