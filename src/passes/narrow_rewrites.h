// Inside the folder: the first step of narrow_math.
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

bool allowsContraction(mlir::Operation* op);

/// f32 expressions of narrow results in forms that cancel less and divide less.
void rewriteNarrow(mlir::ModuleOp module);

}  // namespace vortex::passes
