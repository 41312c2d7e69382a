#pragma once

#include <functional>

#include "lang/flow/graph/graph.h"

namespace vortex::lang::flow {

/// The graph of a kernel whose calls are inlined (kernel/inline_calls).
Graph lowerKernel(const Function& kernel);

/// Which parameters' borrows the result of a function may hold, by position.
using Summary = std::vector<bool>;
using SummaryOf = std::function<Summary(const Function&)>;

/// The graph of a function as it was written, for ownership. `summaryOf` is asked for callees whose results may hold borrows.
Graph lowerWritten(const Function& function, const SummaryOf& summaryOf);

}  // namespace vortex::lang::flow
