#pragma once

#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

/// The graph of a kernel whose calls are inlined (kernel/inline_calls).
Graph lowerKernel(const Function& kernel);

}  // namespace vortex::lang::flow
