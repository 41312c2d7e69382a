#pragma once

#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

/// The graph as text, for people and tests:
///   kernel scale
///   b0:
///     0  v5 = load data[v2] : f32            # 12:9
///     1  branch v3 ? b1 : b2
std::string dump(const Graph& graph, const source::SourceManager& sources);

}  // namespace vortex::lang::flow
