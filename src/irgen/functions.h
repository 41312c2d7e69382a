// Functions that stay functions (`@noinline`).
#pragma once

#include "irgen/type_map.h"

namespace vortex::irgen {

/// An empty function of the numbers that the parameters consist of: the result's, then those of what it may write through references.
mlir::func::FuncOp declareFunction(const lang::Function& function, mlir::ModuleOp module, const TypeMap& types,
                                   mlir::Location loc);
/// Functions that no kernel reaches by calls.
void eraseUncalled(mlir::ModuleOp module);

}  // namespace vortex::irgen
