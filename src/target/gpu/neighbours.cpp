// A filter of 3 × 3 points issues nine loads for a result, of which a thread four rows high shares half. Which loads coincide is not predicted:
// the code is written out for one and for several rows, with constants of indices gathered, and the different loads are counted.
#include "target/gpu/neighbours.h"

#include "ir/vxt.h"
#include "target/gpu/access.h"
#include "target/gpu/join_lanes.h"
#include "target/gpu/straight.h"
#include "target/gpu/threads_as_one.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Interfaces/SideEffectInterfaces.h>

#include <set>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using mlir::Value;

namespace {

/// Two warps at least: a core holds 32 blocks and wants 64 warps.
constexpr int64_t kLeastThreads = 2 * ir::vxt::kWarpThreads;
/// Threads side by side whose accesses are one: half a warp's 4 bytes fill two sectors.
constexpr int64_t kLeastInRow = 16;
constexpr int64_t kMostRows = 4;
/// Of the code as written out, before what is the same is found.
constexpr int64_t kMostWrittenOut = 6000;
/// Loaded values take registers.
constexpr size_t kMostLoads = 80;

bool isGlobal(Value view) { return mlir::cast<ir::ViewType>(view.getType()).getSpace() == ir::Space::Global; }

/// Operations of one run through the block, loops written out; more than kMostWrittenOut: it is none that can be.
int64_t operationsOf(mlir::Block& block, const llvm::DenseSet<Value>& written) {
  constexpr int64_t kNone = kMostWrittenOut + 1;
  int64_t count = 0;
  for (mlir::Operation& op : block) {
    ++count;
    if (auto branch = mlir::dyn_cast<scf::IfOp>(op)) {
      for (mlir::Region& side : branch->getRegions())
        count += side.empty() ? 0 : operationsOf(side.front(), written);
    } else if (auto loop = mlir::dyn_cast<scf::ForOp>(op)) {
      auto known = tripsOf(loop);
      count += known ? *known * operationsOf(*loop.getBody(), written) : kNone;
    } else if (auto load = mlir::dyn_cast<ir::LoadOp>(op)) {
      count += isGlobal(load.getView()) && !written.contains(rootOf(load.getView())) ? 0 : kNone;
    } else if (auto store = mlir::dyn_cast<ir::StoreOp>(op)) {
      count += isGlobal(store.getView()) ? 0 : kNone;
    } else if (!op.hasTrait<mlir::OpTrait::IsTerminator>() && !mlir::isPure(&op)) {
      count += kNone;  // a wait, an end, a division by what may be zero
    }
    if (count > kMostWrittenOut)
      return kNone;
  }
  return count;
}

/// Different elements that a thread loads away from limits, by view and indices.
size_t countLoads(ir::ThreadsOp region, const ThreadShape& shape) {
  ir::ThreadsOp joined = writtenAsOne(region, shape, /*hasLimits=*/false);
  std::set<std::vector<const void*>> different;
  joined.walk([&](ir::LoadOp load) {
    std::vector<const void*> place{load.getView().getAsOpaquePointer()};
    for (Value index : load.getIndices())
      place.push_back(index.getAsOpaquePointer());
    different.insert(std::move(place));
  });
  joined.erase();
  return different.size();
}

/// Whether some view is loaded from at two places, or in a loop.
bool mayShare(ir::ThreadsOp region) {
  llvm::DenseSet<Value> seen;
  return region
      .walk([&](ir::LoadOp load) {
        bool isAgain = !seen.insert(rootOf(load.getView())).second || load->getParentOfType<scf::ForOp>();
        return isAgain ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

}  // namespace

void joinNeighbours(ir::KernelOp phase) {
  constexpr llvm::StringLiteral kJoined = "vx.joined";
  ir::ThreadsOp region = onlyThreads(phase);
  if (!region || region->hasAttr(kJoined) || region->hasAttr(kLanes) || !mayShare(region))
    return;
  const auto known = blockShape(phase, region);
  if (!known)
    return;
  ThreadShape shape = *known;
  const int64_t threads = shape.extents[0] * shape.extents[1] * shape.extents[2];
  const int64_t operations = operationsOf(region.getBody().front(), writtenRoots(phase));
  mlir::OpBuilder b(region);
  auto masked = mlir::cast<ir::ThreadsOp>(b.clone(*region));
  masked.walk([](scf::IfOp branch) {  // inner ones first
    bool hasAccess = branch
                         .walk([](mlir::Operation* op) {
                           return mlir::isa<ir::LoadOp, ir::StoreOp>(op) ? mlir::WalkResult::interrupt()
                                                                         : mlir::WalkResult::advance();
                         })
                         .wasInterrupted();
    if (hasAccess)
      turnIntoMasks(branch);
  });
  std::optional<ThreadShape> chosen;
  std::optional<size_t> alone;
  for (unsigned axis : {1U, 2U}) {
    shape.axis = axis;
    const int64_t beside = shape.extents[0] * (axis == 2 ? shape.extents[1] : 1);
    for (int64_t rows = kMostRows; rows > 1 && !chosen; rows /= 2) {
      if (shape.extents[axis] % rows != 0 || threads / rows < kLeastThreads || beside < kLeastInRow ||
          threads / rows % ir::vxt::kWarpThreads != 0 || operations * rows > kMostWrittenOut)
        continue;
      shape.rows = 1;
      if (!alone)
        alone = countLoads(masked, shape);
      shape.rows = rows;
      const size_t loads = countLoads(masked, shape), apart = *alone * static_cast<size_t>(rows);
      if (loads <= kMostLoads && 5 * loads <= 4 * apart)  // seven points in space: 22 of 28
        chosen = shape;
    }
  }
  ir::ThreadsOp best = chosen ? writtenAsOne(masked, *chosen, /*hasLimits=*/true) : nullptr;
  masked.erase();
  if (!best)
    return;
  best->setAttr(kJoined, b.getUnitAttr());
  replaceThreads(phase, region, *chosen);
}

}  // namespace vortex::target::gpu
