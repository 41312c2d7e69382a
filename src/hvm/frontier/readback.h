// Judges what the passes left.
#pragma once

#include "hvm/eval/term.h"

#include <vector>

namespace vortex::hvm::frontier {

/// Could a rule still be applied to what cell 0 reaches? A term that was stuck on a variable goes on if that is bound afterwards, which happens
/// when a duplication has the label of a superposition that it should pass through.
bool hasRedex(const std::vector<Term>& heap, const std::vector<uint64_t>& definitions);

}  // namespace vortex::hvm::frontier
