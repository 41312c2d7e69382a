// What the threads of a block or warp must do together: barriers, warp operations, work on tiles, shared memory, scalar results.
#pragma once

#include <functional>

#include "diag/diagnostic.h"
#include "lang/flow/check/expr_levels.h"

namespace vortex::lang::flow {

/// E0450–E0453, E0467, E0469. `shapes`: blocks that the kernel may be launched with. `waits`: a loop is a lock, say, which is told by itself.
void checkBarriers(const Function& kernel, const ExprLevels& levels, std::span<const BlockShape> shapes,
                   const std::function<bool()>& waits, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::flow
