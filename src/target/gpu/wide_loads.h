// Neighbouring elements that one thread loads one by one.
#pragma once

#include "ir/vx.h"

#include <llvm/ADT/DenseMap.h>

namespace vortex::target::gpu {

/// Loads in one block of operations, under one mask, of elements that lie side by side in a row. The index of the first element is a multiple of
/// `count`, so that they are one access where rows start at multiples of its bytes.
struct WideLoad {
  unsigned count = 0;                                        ///< elements, a power of two; 4, 8 or 16 bytes
  llvm::SmallVector<std::pair<ir::LoadOp, unsigned>> loads;  ///< as they stand, each with its element
};

/// By the load that stands first; of memory that the phase does not write.
using WideLoads = llvm::DenseMap<mlir::Operation*, WideLoad>;
WideLoads findWideLoads(ir::KernelOp phase);

}  // namespace vortex::target::gpu
