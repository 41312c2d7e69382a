#pragma once

#include <map>

#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {

/// The Elements and Slices whose indices, as the machine computes them, are inside for every launch (Proven), or for every launch with the kernel's own
/// block (ProvenForBlock). `hasOwnGrid`: no launch can give another grid than the kernel's. `graph` gains values.
std::map<const Expr*, lang::Guard> proveBounds(Graph& graph, const Structure& structure, bool hasOwnGrid);

}  // namespace vortex::lang::flow
