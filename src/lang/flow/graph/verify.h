#pragma once

#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

/// What is wrong with the graph, a line for each; empty for a graph as it should be: blocks and edges agree, a phi has one operand for each
/// predecessor, definitions dominate uses, exits of loops are entered from them only, uses behind a loop go through phis.
std::string verify(const Graph& graph);

}  // namespace vortex::lang::flow
