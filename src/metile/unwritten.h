// Which shared memory may be read before it is written, element by element.
#pragma once

#include "metile/kinds.h"

#include <set>

namespace vortex::metile {

/// Ids of shared memory of which an element may be read that nothing has written: all but that whose stores, as far as offsets and masks follow from
/// the numbers of lanes and from constants, come before the loads of the same elements.
std::set<int32_t> readUnwritten(const Trace& trace, const std::vector<Kind>& kinds);

}  // namespace vortex::metile
