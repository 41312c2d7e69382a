// Products of tile code whose sums need more memory of a threadgroup than there is, in parts.
#pragma once

#include <mlir/IR/BuiltinOps.h>

namespace vortex::target::metal {

/// A stored tile that comes from a product with more than `mostBytes` of sums, element by element, is computed and stored in equal parts, one after
/// another: rows and columns are halved until their sums fit. What else needs the sums stays as it is.
void splitProducts(mlir::ModuleOp module, uint64_t mostBytes);

}  // namespace vortex::target::metal
