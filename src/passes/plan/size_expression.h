// Index values and conditions of a kernel as expressions over the arguments of its entry, which a launch evaluates.
#pragma once

#include "ir/size_attr.h"
#include "ir/vx.h"

namespace vortex::passes {

/// What is known of a value besides; null: nothing.
using SizeLeaf = llvm::function_ref<ir::SizeAttr(mlir::Value)>;

/// The extent as an expression over the entry's arguments; null when it is computed from anything else.
ir::SizeAttr sizeExpression(mlir::OpFoldResult size, SizeLeaf leaf = nullptr);

/// Null, too, where the kernel computes in fewer than the 64 bits that launches have: that would wrap elsewhere.
ir::SizeAttr wideExpression(mlir::Value value, SizeLeaf leaf = nullptr);

/// 0 or 1, as the i1 is; null: not known before the launch.
ir::SizeAttr conditionExpression(mlir::Value value, SizeLeaf leaf = nullptr);

}  // namespace vortex::passes
