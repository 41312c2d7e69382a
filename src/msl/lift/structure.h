// Branches to structured control flow.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace vortex::msl::lift {

/// Turns cf into scf.if and scf.while. False if an operation of the function does not allow that.
bool structureControl(mlir::func::FuncOp function);

}  // namespace vortex::msl::lift
