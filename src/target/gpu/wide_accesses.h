// Neighbouring elements that one thread loads or stores one by one.
#pragma once

#include "ir/vx.h"

#include <llvm/ADT/DenseMap.h>

namespace vortex::target::gpu {

/// Accesses in one block of operations, under one mask, of elements that lie side by side in a row. The index of the first element is a multiple of
/// `count`, so that they are one access where rows start at multiples of its bytes.
struct WideAccess {
  unsigned count = 0;                                              ///< elements, a power of two; 4, 8 or 16 bytes
  llvm::SmallVector<std::pair<mlir::Operation*, unsigned>> parts;  ///< as they stand, each with its element
};

struct WideAccesses {
  /// By the one that stands first; of memory that the phase does not write.
  llvm::DenseMap<mlir::Operation*, WideAccess> loads;
  /// By the one that stands last; of memory that the phase reads nowhere and its block writes nowhere else.
  llvm::DenseMap<mlir::Operation*, WideAccess> stores;
  llvm::DenseMap<mlir::Operation*, mlir::Operation*> lastOf;  ///< by each of its stores
};
WideAccesses findWideAccesses(ir::KernelOp phase);

}  // namespace vortex::target::gpu
