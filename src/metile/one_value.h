// Stores of one value by several lanes.
#pragma once

#include "metile/kinds.h"

#include <map>
#include <set>
#include <span>

namespace vortex::metile {

/// Whose lanes all store the value.
enum class Sharers : uint8_t { Instance, Launch };

/// Of the stores that stand at these places in the source, by the index of the operation: those that leave the same in memory whichever lane is the
/// last, so that they are no race of its lanes. The value is the same for all lanes and in every round of the loops around the store; nothing else of the
/// stores here, and no atomic, changes that memory to something else.
std::map<size_t, Sharers> storesOfOneValue(const Trace& trace, std::span<const source::SourceRange> places);

}  // namespace vortex::metile
