#include "target/gpu/coarsening.h"

#include "ir/vxt.h"
#include "target/gpu/access.h"

#include <llvm/ADT/DenseSet.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/Interfaces/SideEffectInterfaces.h>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
namespace scf = mlir::scf;

namespace {

/// Bytes that each thread of full cores keeps in flight. Measured on an H200, GELU of 64 MB in f32: 4 bytes reach 0.51 of a copy, 8 0.78,
/// 16 0.94, 32 0.95.
constexpr int64_t kBytesInFlight = 16;
constexpr int64_t kMostThreads = 8;
/// Longer bodies keep the core busy with one element per thread, and several would not fit its registers.
constexpr int64_t kMostOperations = 200;

struct Traffic {
  int64_t loadedBytes = 0, operations = 0;
};

bool isAccess(mlir::Operation* op) { return mlir::isa<ir::LoadOp, ir::StoreOp>(op); }

mlir::Value viewOf(mlir::Operation* access) {
  if (auto load = mlir::dyn_cast<ir::LoadOp>(access))
    return load.getView();
  return mlir::cast<ir::StoreOp>(access).getView();
}

bool isGlobal(mlir::Operation* access) {
  return mlir::cast<ir::ViewType>(viewOf(access).getType()).getSpace() == ir::Space::Global;
}

/// Adds what the block does. False: it is not straight, or waits for what the phase itself writes.
bool add(mlir::Block& block, const llvm::DenseSet<mlir::Value>& written, Traffic& traffic) {
  for (mlir::Operation& op : block) {
    ++traffic.operations;
    if (auto branch = mlir::dyn_cast<scf::IfOp>(op)) {
      for (mlir::Region& side : branch->getRegions())
        if (!side.empty() && !add(side.front(), written, traffic))
          return false;
    } else if (isAccess(&op)) {
      if (!isGlobal(&op))
        return false;
      if (auto load = mlir::dyn_cast<ir::LoadOp>(op)) {
        if (written.contains(rootOf(load.getView())))
          return false;
        traffic.loadedBytes += ir::vxt::valueBytes(load.getType());
      }
    } else if (!op.hasTrait<mlir::OpTrait::IsTerminator>() && !mlir::isPure(&op)) {
      return false;  // a division by what may be zero, too
    }
  }
  return true;
}

/// The accesses of both sides under masks, everything else as it is, in front of the branch.
void mask(scf::IfOp branch) {
  mlir::OpBuilder b(branch);
  mlir::Location loc = branch.getLoc();
  mlir::Value condition = branch.getCondition();
  llvm::SmallVector<mlir::Value> results[2];
  for (auto [number, side] : llvm::enumerate(branch->getRegions())) {
    if (side.empty())
      continue;
    mlir::Value holds = condition;
    if (number == 1)
      holds = b.create<arith::XOrIOp>(loc, condition, b.create<arith::ConstantIntOp>(loc, 1, 1));
    for (mlir::Operation& op : llvm::make_early_inc_range(side.front())) {
      if (op.hasTrait<mlir::OpTrait::IsTerminator>()) {
        results[number].append(op.operand_begin(), op.operand_end());
        continue;
      }
      op.moveBefore(branch);
      const auto restrict = [&](auto access) {
        b.setInsertionPoint(access);
        mlir::Value own = access.getMask();
        access.getMaskMutable().assign(own ? b.create<arith::AndIOp>(loc, own, holds).getResult() : holds);
        b.setInsertionPoint(branch);
      };
      if (auto load = mlir::dyn_cast<ir::LoadOp>(op))
        restrict(load);
      else if (auto store = mlir::dyn_cast<ir::StoreOp>(op))
        restrict(store);
    }
  }
  for (auto [result, then, otherwise] : llvm::zip(branch.getResults(), results[0], results[1]))
    result.replaceAllUsesWith(b.create<arith::SelectOp>(loc, condition, then, otherwise));
  branch.erase();
}

}  // namespace

int64_t coarsen(ir::KernelOp phase, int64_t logicalThreads) {
  llvm::DenseSet<mlir::Value> written;
  llvm::SmallVector<ir::ThreadsOp> regions;
  bool isStraight = true;
  for (mlir::Operation& op : phase.getBody().front()) {
    if (auto region = mlir::dyn_cast<ir::ThreadsOp>(op)) {
      regions.push_back(region);
      isStraight = isStraight && region.getNumResults() == 0;
    } else if (!op.hasTrait<mlir::OpTrait::IsTerminator>() && !mlir::isPure(&op)) {
      isStraight = false;
    }
  }
  phase.walk([&](mlir::Operation* op) {
    forEachAccess(op, [&](mlir::Value view, bool isWrite) {
      if (isWrite)
        written.insert(rootOf(view));
    });
  });
  Traffic traffic;
  for (ir::ThreadsOp region : regions)
    isStraight = isStraight && add(region.getBody().front(), written, traffic);
  if (!isStraight || regions.size() != 1 || traffic.loadedBytes == 0 || traffic.operations > kMostOperations)
    return 1;
  int64_t threads = 1;
  while (threads < kMostThreads && threads * traffic.loadedBytes < kBytesInFlight &&
         logicalThreads % (2 * threads * ir::vxt::kWarpThreads) == 0)
    threads *= 2;
  if (threads > 1)
    regions.front().walk([](scf::IfOp branch) { mask(branch); });  // inner ones first
  return threads;
}

}  // namespace vortex::target::gpu
