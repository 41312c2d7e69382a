#include "target/gpu/coarsening.h"

#include "ir/vxt.h"
#include "target/gpu/join_lanes.h"
#include "target/gpu/straight.h"

#include <mlir/Interfaces/SideEffectInterfaces.h>

namespace vortex::target::gpu {

namespace scf = mlir::scf;

namespace {

/// Bytes that each thread of full cores keeps in flight. Measured on an H200, GELU of 64 MB in f32: 4 bytes reach 0.51 of a copy, 8 0.78,
/// 16 0.94, 32 0.95.
constexpr int64_t kBytesInFlight = 16;
constexpr int64_t kMostThreads = 8;
/// Longer bodies keep the core busy with one element per thread, and several would not fit its registers.
constexpr int64_t kMostOperations = 200;
/// What was decided for the phase: its masks are more operations than its branches, and all versions have the same threads.
constexpr llvm::StringLiteral kTogether = "vx.together";

}  // namespace

int64_t coarsen(ir::KernelOp phase, int64_t logicalThreads) {
  llvm::SmallVector<ir::ThreadsOp> regions;
  bool isStraight = true;
  for (mlir::Operation& op : phase.getBody().front()) {
    if (auto region = mlir::dyn_cast<ir::ThreadsOp>(op)) {
      regions.push_back(region);
      isStraight = isStraight && region.getNumResults() == 0 && !region->hasAttr(kLanes);
    } else if (!op.hasTrait<mlir::OpTrait::IsTerminator>() && !mlir::isPure(&op)) {
      isStraight = false;
    }
  }
  const llvm::DenseSet<mlir::Value> written = writtenRoots(phase);
  Traffic traffic;
  for (ir::ThreadsOp region : regions)
    isStraight = isStraight && addTraffic(region.getBody().front(), written, traffic);
  if (!isStraight || regions.size() != 1 || traffic.loadedBytes == 0)
    return 1;
  if (auto earlier = phase->getAttrOfType<mlir::IntegerAttr>(kTogether))
    return earlier.getInt();
  if (traffic.operations > kMostOperations)
    return 1;
  int64_t threads = 1;
  while (threads < kMostThreads && threads * traffic.loadedBytes < kBytesInFlight &&
         logicalThreads % (2 * threads * ir::vxt::kWarpThreads) == 0)
    threads *= 2;
  if (threads > 1) {
    regions.front().walk([](scf::IfOp branch) { turnIntoMasks(branch); });  // inner ones first
    phase->setAttr(kTogether, mlir::Builder(phase.getContext()).getI64IntegerAttr(threads));
  }
  return threads;
}

}  // namespace vortex::target::gpu
