// Loops whose iterations do not meet, so that they may run in any order or at once.
#pragma once

#include <string>
#include <vector>

#include "lang/flow/graph/structure.h"

namespace vortex::lang::flow {

/// What was found about the iterations of one loop.
struct LoopVerdict {
  enum class Kind : uint8_t {
    Independent,  ///< they do not meet: each tensor that is stored to has a dimension that every access to it in the loop subscripts by the variable
    Unproven,     ///< they may meet in an element
    InOrder,      ///< one leaves something to the next, or ends the loop
    OfTiles,      ///< they hold operations on whole tensors
  };
  Kind kind = Kind::InOrder;
  std::string reason = {};  ///< unless Independent
  source::SourceRange at = {};
  bool touchesMemory = false;  ///< elements of tensors are accessed
};

/// Of every loop, in the order of graph.loops. `graph` gains values.
std::vector<LoopVerdict> loopVerdicts(Graph& graph, const Structure& structure);

}  // namespace vortex::lang::flow
