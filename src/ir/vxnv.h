// The vxnv dialect in C++: roles of warpgroups, rings and asynchronous products, generated from vxnv_ops.td.
#pragma once

#include "ir/vxt.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-parameter"
#include "ir/vxnv_dialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/vxnv_attrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/vxnv_types.h.inc"
#define GET_OP_CLASSES
#include "ir/vxnv_ops.h.inc"
#pragma clang diagnostic pop

namespace vortex::ir::vxnv {

/// On a vxt.kernel: its maps, an array of #vxnv.map.
inline constexpr llvm::StringLiteral kMaps = "vxnv.maps";

inline constexpr int64_t kGroupThreads = 128;  ///< of a warpgroup
inline constexpr int64_t kGroupWarps = 4;
inline constexpr int64_t kDepthBytes = 128;  ///< that a dot_start multiplies
inline constexpr int64_t kStepWords = 16;    ///< of A in registers, for that depth
inline constexpr int64_t kAcrossBlock =
    8192;  ///< bytes of a block of an operand that lies across: 64 steps of 128 bytes

/// Map `number` of the kernel around `op`; null: there is none.
MapAttr findMap(mlir::Operation* op, int64_t number);
/// Whether every role goes through the same slots, no slot is given back while something reads it, and all are given back.
mlir::LogicalResult verifyRings(RolesOp roles);

}  // namespace vortex::ir::vxnv
