// Control flow around tiles that every element of them can run by itself.
#pragma once

#include "ir/vx.h"

namespace vortex::analysis {

/// A `scf.for`, `scf.while` or `scf.if` whose results are tiles of one shape and whose bodies compute them element by element: no operation inside
/// needs another element than the one it makes, and nothing inside accesses memory. Results that are no tiles have no uses. `isOutside`:
/// operations that count as if they stood before it.
bool isElementControl(
    mlir::Operation* control,
    llvm::function_ref<bool(mlir::Operation*)> isOutside = [](mlir::Operation*) { return false; });

/// Calls `visit` for the tiles from outside that element control is computed from, each at the same element as its results. Once per use.
void forEachOuterTile(mlir::Operation* control, llvm::function_ref<void(mlir::Value)> visit);

}  // namespace vortex::analysis
