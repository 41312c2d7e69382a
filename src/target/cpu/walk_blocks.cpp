#include "target/cpu/walk_blocks.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/Func/IR/FuncOps.h>
#include <mlir/Dialect/SCF/IR/SCF.h>

namespace vortex::target::cpu {

namespace scf = mlir::scf;

namespace {

/// Which coordinates of the block values may depend on.
class BlockCoordinates {
public:
  static constexpr unsigned kX = 1, kY = 2;

  explicit BlockCoordinates(ir::KernelOp phase) {
    do {
      changed_ = false;
      phase.walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation* op) { visit(op); });
    } while (changed_);
  }

  unsigned of(mlir::Value value) const { return known_.lookup(value); }
  unsigned of(mlir::ValueRange values) const {
    unsigned all = 0;
    for (mlir::Value value : values)
      all |= of(value);
    return all;
  }

private:
  void add(mlir::Value value, unsigned coordinates) {
    unsigned& known = known_[value];
    changed_ |= (known | coordinates) != known;
    known |= coordinates;
  }

  void flow(mlir::ValueRange from, mlir::ValueRange to) {
    for (auto [source, target] : llvm::zip(from, to))
      add(target, of(source));
  }

  void visit(mlir::Operation* op) {
    llvm::TypeSwitch<mlir::Operation*>(op)
        .Case([&](ir::BlockIdOp id) { add(id, 1u << unsigned(id.getAxis())); })
        .Case([&](ir::ThreadsOp region) {
          mlir::Block& body = region.getBody().front();
          flow(region.getInputs(), body.getArguments().drop_front(4));
          flow(body.getTerminator()->getOperands(), region.getResults());
        })
        .Case([&](scf::ForOp loop) {
          add(loop.getInductionVar(), of({loop.getLowerBound(), loop.getStep()}));
          flow(loop.getInitArgs(), loop.getRegionIterArgs());
          flow(loop.getYieldedValues(), loop.getRegionIterArgs());
          flow(loop.getRegionIterArgs(), loop.getResults());
        })
        .Case([&](scf::WhileOp loop) {
          flow(loop.getInits(), loop.getBeforeArguments());
          flow(loop.getYieldOp().getOperands(), loop.getBeforeArguments());
          flow(loop.getConditionOp().getArgs(), loop.getAfterArguments());
          flow(loop.getConditionOp().getArgs(), loop.getResults());
        })
        .Default([&](mlir::Operation* other) {
          unsigned all = of(other->getOperands());
          for (mlir::Region& region : other->getRegions())
            for (mlir::Block& block : region)
              all |= of(block.getTerminator()->getOperands());
          for (mlir::Value result : other->getResults())
            add(result, all);
        });
  }

  llvm::DenseMap<mlir::Value, unsigned> known_;
  bool changed_ = false;
};

}  // namespace

static bool mayNoticeOrder(mlir::Operation* op) {
  return mlir::isa<ir::PrintOp, ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp, ir::AtomicStoreOp, ir::FenceOp,
                   mlir::func::CallOp>(op);
}

bool runsInBands(ir::KernelOp phase) {
  const auto any = [&](llvm::function_ref<bool(mlir::Operation*)> holds) {
    return phase
        .walk([&](mlir::Operation* op) {
          return holds(op) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
        })
        .wasInterrupted();
  };
  if (any(mayNoticeOrder))
    return false;
  const BlockCoordinates coordinates(phase);
  return any([&](mlir::Operation* op) {
    auto load = mlir::dyn_cast<ir::LoadOp>(op);
    return load && (op->getParentOfType<scf::ForOp>() || op->getParentOfType<scf::WhileOp>()) &&
           load.getView().getType().getSpace() == ir::Space::Global &&
           (coordinates.of(load.getIndices()) | coordinates.of(load.getView())) == BlockCoordinates::kX;
  });
}

}  // namespace vortex::target::cpu
