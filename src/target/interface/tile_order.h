// Loads of tiles are evaluated where they are used: what may write their memory in between.
#pragma once

#include "ir/vx.h"

namespace vortex::target {

/// `effect` may write memory that `view` is a window of; a barrier, any.
bool mayWrite(mlir::Operation* effect, mlir::Value view);

/// Something behind `op`, in the block that holds it, or inside `op` reads the load, or what is computed from it and has no memory of its own
/// (`hasPlace`). `isPerElement`: operations with regions whose results are such values, too.
bool isReadAfter(ir::TileLoadOp load, mlir::Operation* op, llvm::function_ref<bool(mlir::Value)> hasPlace,
                 llvm::function_ref<bool(mlir::Operation*)> isPerElement);

}  // namespace vortex::target
