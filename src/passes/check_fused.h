// `@fused`: a whole-tensor kernel that is one launch, or an error.
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// On the entry: the program wants it so.
inline constexpr llvm::StringLiteral kFusedAttr = "vx.fused";

/// After scheduling. Fails, with a diagnostic that names what is a launch of its own, where no case of the launch runs all of a `@fused` kernel at
/// once. Cases for tensors that lie otherwise may take several.
mlir::LogicalResult checkFused(mlir::ModuleOp module);

}  // namespace vortex::passes
