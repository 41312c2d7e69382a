// %gnf on a device: the term moves from the evaluator's heap to the engine of slices and comes back as far as that could reduce it.
#pragma once

#include "hvm/eval/machine.h"
#include "hvm/slices/engine.h"

namespace vortex::hvm::slices {

/// Reduces the term, with the heap to itself; returns the number of interactions. What the kernels have no rules for, terms that leave most of the
/// device idle and errors of the program are left to the evaluator, as is everything when the device has no room. Errors: those of the device.
Result<uint64_t> reduceOnDevice(const SliceOptions& options, Machine& machine, Term& term);

}  // namespace vortex::hvm::slices
