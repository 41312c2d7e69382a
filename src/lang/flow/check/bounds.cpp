#include "lang/flow/check/bounds.h"

#include <algorithm>

#include "lang/flow/check/surroundings.h"

namespace vortex::lang::flow {
namespace {

/// begin + length <= extent, as integers. Facts are those of the whole block: its points share one context.
bool isInside(const Subscript& subscript, const Graph& graph, Values& values) {
  const PointId point = pointOf(graph[graph.blockOf(subscript.before)].begin);
  return std::all_of(subscript.parts.begin(), subscript.parts.end(), [&](const Subscript::Part& part) {
    const auto end = Polynomial::sum(values.integer(part.begin, point), values.integer(part.length, point));
    const auto room = end ? Polynomial::sum(values.integer(part.extent, point), *end, -1) : std::nullopt;
    return room && values.isAtLeastZero(*room, point);
  });
}

}  // namespace

std::map<const Expr*, lang::Guard> proveBounds(Graph& graph, const Structure& structure, bool hasOwnGrid) {
  const Function& kernel = *graph.function;
  const auto valuesFor = [&](bool hasOwnBlock) {
    const LaunchSizes sizes{.block = {}, .grid = {}, .usesOwnBlock = hasOwnBlock, .usesOwnGrid = hasOwnGrid};
    return Values(graph.values, surroundingsOf(graph, structure, graph.values),
                  launchFacts(kernel, sizes, graph.values));
  };
  Values forAll = valuesFor(false), forOwn = valuesFor(true);
  std::map<const Expr*, lang::Guard> guards;
  for (const Subscript& subscript : graph.subscripts) {
    const bool isProven = isInside(subscript, graph, forAll);
    const bool isProvenForBlock = !isProven && !kernel.kernel->block.empty() && isInside(subscript, graph, forOwn);
    const lang::Guard guard = isProven           ? lang::Guard::Proven
                              : isProvenForBlock ? lang::Guard::ProvenForBlock
                                                 : lang::Guard::Guarded;
    // What is evaluated in several places is as good as the worst of them.
    const auto [found, isNew] = guards.try_emplace(subscript.origin, guard);
    if (found->second == lang::Guard::Proven || guard == lang::Guard::Guarded)
      found->second = guard;
  }
  return guards;
}

}  // namespace vortex::lang::flow
