// Slices of tiles that may reach over an edge.
#pragma once

#include "ir/vx.h"

namespace vortex::ir {

/// On a vx.slice: the dimensions of its source along which it may reach over the edges, on either side and by any distance, as
/// `array<i64: 0, 1>`. Elements outside are 0. Without it all elements are inside.
inline constexpr llvm::StringLiteral kGuardedDims = "vx.guarded_dims";

inline llvm::ArrayRef<int64_t> guardedDims(SliceOp slice) {
  auto dims = slice->getAttrOfType<mlir::DenseI64ArrayAttr>(kGuardedDims);
  return dims ? dims.asArrayRef() : llvm::ArrayRef<int64_t>();
}

inline bool isGuarded(SliceOp slice, int64_t dim) { return llvm::is_contained(guardedDims(slice), dim); }

}  // namespace vortex::ir
