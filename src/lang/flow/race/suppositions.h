// What would make a pair's proof hold in all launches that keep to it: products of sizes that fit the integers which the kernel counts in. A
// launch that does not keep to what a proof counts on is refused.
#pragma once

#include "lang/flow/race/pair.h"

namespace vortex::lang::flow {

struct Supposition {
  LaunchLimit limit;
  std::vector<Condition> conditions;
  std::optional<LaunchFacts::Product> product;
};

/// The product of these extents and parameters is at most this; nothing where launches do not know one of them.
std::optional<LaunchLimit> limitOf(const Graph& graph, std::span<const ValueId> factors, __int128 most);

/// None where subscripts depend on memory: no size says anything of that. `areSmall`: each number is supposed to leave room for a few others.
std::vector<Supposition> suppositionsOf(Pair& pair, bool areSmall);

}  // namespace vortex::lang::flow
