#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>

namespace vortex::passes {

/// On a loop: how many slots the buffers that it stages have (`@pipeline`).
inline constexpr llvm::StringLiteral kPipelineStages = "vx.pipeline";

/// Block-level loops marked with a number of stages copy that many iterations ahead, less one: each of their buffers becomes as many slots, and
/// iteration i reads slot i modulo their number. Results are the same. Fails, with a diagnostic that says what is in the way, where the copies
/// of an iteration cannot start before it.
mlir::LogicalResult pipelineLoops(mlir::ModuleOp module);

/// `vx-pipeline-loops`.
std::unique_ptr<mlir::Pass> createPipelineLoopsPass();

}  // namespace vortex::passes
