#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Support/LogicalResult.h"

#include <memory>

namespace vortex::passes {

/// On scf.for: the program asks for it, so it happens or the pass fails with the reason.
inline constexpr llvm::StringLiteral kUnrollAttr = "vx.unroll";

/// Replaces loops whose bounds are constants by their iterations: those with kUnrollAttr, and in code of threads short ones that index an array of
/// the thread by their counter, so that its elements can be registers. Before: vx before or after the schedule. After: the same results; counters are
/// constants that nothing has folded yet.
mlir::LogicalResult unrollLoops(mlir::ModuleOp module);

/// `vx-unroll-loops`.
std::unique_ptr<mlir::Pass> createUnrollLoopsPass();

}  // namespace vortex::passes
