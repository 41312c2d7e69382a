// %gnf on a device: the term moves from the evaluator's heap to the frontier engine and comes back as far as that could reduce it.
#pragma once

#include "hvm/eval/machine.h"
#include "hvm/frontier/engine.h"

namespace vortex::hvm::frontier {

/// Reduces the term, with the heap to itself; returns the number of interactions. What the kernels have no rules for and terms that leave most of
/// the device idle are left to the evaluator, as is everything when the device has no room or finds an error in the program. Errors: those of
/// the device.
Result<uint64_t> reduceOnDevice(const Program& program, const EngineOptions& options, Machine& machine, Term& term);

}  // namespace vortex::hvm::frontier
