// Where a kernel is cut so that what it computed is read from memory and not computed again and again.
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// Operations of a block behind which a new piece begins: each makes a value that is stored there. Work between two of them stays in proportion to the
/// program's: an element is computed from at most kMostComputed values or kMostTimes those that the program writes down, and so are all elements of what
/// phases compute for themselves (reductions, products, scans, stores), where the extents of what would be stored are known before the launch.
/// `isControl`: operations that end a piece anyhow.
llvm::DenseSet<mlir::Operation*> findStoredValues(mlir::Block& block,
                                                  llvm::function_ref<bool(mlir::Operation*)> isControl);

}  // namespace vortex::passes
