// Several neighbouring threads of a block as one.
#pragma once

#include "ir/vx.h"

#include <mlir/Dialect/SCF/IR/SCF.h>

#include <optional>

namespace vortex::target::gpu {

struct ThreadShape {
  int64_t extents[3] = {1, 1, 1};  ///< of the block as it is written
  unsigned axis = 1;               ///< of which one thread takes
  int64_t rows = 1;                ///< so many, side by side
};

/// The most iterations of a loop that is written out.
constexpr int64_t kMostTrips = 6000;
/// Iterations of a loop of known length; none: it has none, or more than kMostTrips elements between its bounds.
std::optional<int64_t> tripsOf(mlir::scf::ForOp loop);

/// The one region of threads of a phase that does nothing else, which has no results; null: there is none.
ir::ThreadsOp onlyThreads(ir::KernelOp phase);
/// The region's extents; none: they are not those of the block, or not known before the launch.
std::optional<ThreadShape> blockShape(ir::KernelOp phase, ir::ThreadsOp region);

/// The value is the same in all threads of the region.
bool isFixed(mlir::Value value, mlir::Region& region);

/// In front of `op`, straight code and loops of known length, the same with fewer threads, loops written out. Without `hasLimits`: as in blocks that no
/// minimum or maximum with what all threads share concerns.
ir::ThreadsOp writtenAsOne(ir::ThreadsOp op, const ThreadShape& shape, bool hasLimits);

/// The phase has blocks of fewer threads from now on, and not the region that was written anew.
void replaceThreads(ir::KernelOp phase, ir::ThreadsOp region, const ThreadShape& shape);

}  // namespace vortex::target::gpu
