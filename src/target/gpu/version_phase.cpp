#include "target/gpu/version_phase.h"

#include "target/gpu/join_lanes.h"
#include "target/gpu/keep_rows.h"

namespace vortex::target::gpu {

VersionPhase::VersionPhase(ir::KernelOp phase, const Assumptions& assumptions, int64_t lanes) : phase_(phase) {
  // Tensors that lie anyhow are rare: smaller code counts more.
  const bool isGeneral = !assumptions.unitStrides && assumptions.wholeRows.empty();
  if (isGeneral || !phase.walk([](ir::ThreadsOp) { return mlir::WalkResult::interrupt(); }).wasInterrupted())
    return;
  copy_ = mlir::cast<ir::KernelOp>(mlir::OpBuilder(phase).clone(*phase));
  bool isChanged = keepRows(copy_);
  if (lanes > 1 && !assumptions.wholeRows.empty())
    isChanged |= joinLanes(copy_, lanes);
  if (!isChanged) {
    copy_.erase();
    copy_ = nullptr;
  }
}

VersionPhase::~VersionPhase() {
  if (copy_)
    copy_.erase();
}

}  // namespace vortex::target::gpu
