// The vxt dialect in C++: per-thread code, generated from vxt_enums.td and vxt_ops.td.
#pragma once

#include "ir/vx.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#include "ir/vxt_enums.h.inc"

#include "ir/vxt_dialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/vxt_attrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/vxt_types.h.inc"
#define GET_OP_CLASSES
#include "ir/vxt_ops.h.inc"
#pragma clang diagnostic pop

namespace vortex::ir::vxt {

inline constexpr int64_t kWarpThreads = 32;

/// Bytes of a scalar in memory (bool 1, index 8).
int64_t scalarBytes(mlir::Type type);
/// Bytes of a scalar or vector in memory.
int64_t valueBytes(mlir::Type type);

}  // namespace vortex::ir::vxt
