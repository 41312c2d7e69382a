// Products that a launch may call with one row or one column.
#pragma once

#include "ir/vx.h"

namespace vortex::passes {

/// A copy of a kernel that is right for launches of which `needs` is not zero.
struct VectorWay {
  llvm::StringRef name;
  ir::SizeAttr needs;
  ir::KernelOp kernel;  ///< beside the original
};

/// Copies of whole-tensor code outside loops for launches in which all its products have one row, and in which all have one column: there the extent
/// is the constant 1 everywhere, and the products are sums (vector_products.h). None where that is known before, where the products' rows (columns) have
/// different extents, or where any of them would stay a product or is better as one.
llvm::SmallVector<VectorWay, 2> addVectorWays(ir::KernelOp kernel);

}  // namespace vortex::passes
