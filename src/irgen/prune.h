#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace vortex::irgen {

/// Removes what generation left over: results and operands of thread regions nobody uses, values merged by control flow and then not
/// read, flags that are constants, dead code.
void prune(mlir::ModuleOp module);

}  // namespace vortex::irgen
