// A window on memory as vxt values. Views never flow through control flow, so these are compile-time structs.
#pragma once

#include "ir/vxt.h"

#include <llvm/ADT/SmallVector.h>

namespace vortex::target::gpu {

/// Element (i, j, …) lies at pointer[offset], offset = i · strides[0] + j · strides[1] + …, then the swizzle's XOR (of the offset from the
/// allocation's start: a window of a swizzled view keeps the allocation's pointer and adds to `base`).
struct View {
  mlir::Type elementType;
  ir::Space space = ir::Space::Global;
  mlir::Value pointer;                     ///< !vxt.ptr
  llvm::SmallVector<mlir::Value> extents;  ///< index; constants where known
  llvm::SmallVector<mlir::Value> strides;  ///< index, in elements; constants where known
  mlir::Value base;                        ///< index, elements to add to every offset; null: 0
  ir::SwizzleAttr swizzle;                 ///< null: none
  mlir::Value root;                        ///< the vx argument or vx.alloc it is a window of
  bool readOnly = false;     ///< a parameter nobody writes during the launch: Cache::ReadOnly loads are allowed
  int64_t alignment = 0;     ///< known alignment of the first element in bytes; 0: the element's
  bool alignedRows = false;  ///< strides of all but the last dimension are multiples of 16 bytes, its own is one
  unsigned rowDim = 0;       ///< of an argument: what stands for the last dimension above (rowsOf)
  bool wholeRows = false;    ///< the last extent is a multiple of 16 bytes
  /// A local view made outside a region has an instance per logical thread of this hardware thread.
  llvm::SmallVector<mlir::Value> slotPointers;
  unsigned rank() const { return extents.size(); }
};

/// The extent of this dimension is a multiple of 16 bytes: known, or a constant that is.
bool isWholeRow(const View& view, unsigned dim, bool isKnown);

}  // namespace vortex::target::gpu
