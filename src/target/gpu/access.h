// Which memory an operation touches, by view.
#pragma once

#include "ir/vx.h"

namespace vortex::target::gpu {

/// The argument or vx.alloc a view is a window of.
mlir::Value rootOf(mlir::Value view);

/// Calls `visit(view, isWrite)` for each memory access of one vx op (not of ops nested in it). Atomics read and write.
void forEachAccess(mlir::Operation* op, llvm::function_ref<void(mlir::Value view, bool isWrite)> visit);

}  // namespace vortex::target::gpu
