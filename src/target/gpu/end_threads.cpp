#include "target/gpu/end_threads.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/SCF/IR/SCF.h>

namespace vortex::target::gpu {

namespace vxt = ir::vxt;
namespace arith = mlir::arith;

static constexpr llvm::StringLiteral kGoesOn = "vxt.goes_on";

bool goesOn(vxt::AssertOp check) { return check->hasAttr(kGoesOn); }

namespace {

/// The mark: a bool of the thread's own, true while it is alive.
class Marker {
public:
  explicit Marker(vxt::KernelOp kernel) {
    auto b = mlir::OpBuilder::atBlockBegin(&kernel.getBody().front());
    mlir::Location loc = kernel.getLoc();
    zero_ = b.create<arith::ConstantIndexOp>(loc, 0);
    auto pointer = vxt::PtrType::get(b.getContext(), ir::Space::Local);
    alive_ = b.create<vxt::LocalOp>(loc, pointer, b.getI1Type(), int64_t{1}, int64_t{0});
    store(b, loc, b.create<arith::ConstantOp>(loc, b.getBoolAttr(true)));
  }

  mlir::Value load(mlir::OpBuilder& b, mlir::Location loc) {
    return b.create<vxt::LoadOp>(loc, b.getI1Type(), alive_, zero_, mlir::Value(), int64_t{0}, vxt::Cache::Default);
  }
  void store(mlir::OpBuilder& b, mlir::Location loc, mlir::Value value) {
    b.create<vxt::StoreOp>(loc, value, alive_, zero_, mlir::Value(), int64_t{0}, vxt::Cache::Default);
  }

  void mark(vxt::AssertOp op) {
    mlir::OpBuilder b(op);
    mlir::Location loc = op.getLoc();
    mlir::Value alive = load(b, loc);
    mlir::Value dead = b.create<arith::XOrIOp>(loc, alive, b.create<arith::ConstantOp>(loc, b.getBoolAttr(true)));
    mlir::Value passes = b.create<arith::OrIOp>(loc, op.getCondition(), dead);
    mlir::Value lives = b.create<arith::AndIOp>(loc, alive, op.getCondition());
    op.getConditionMutable().assign(passes);
    op->setAttr(kGoesOn, b.getUnitAttr());
    b.setInsertionPointAfter(op);
    store(b, loc, lives);
  }

  /// Loads and stores get the mark as their mask.
  template <class Access> void mask(Access op) {
    mlir::OpBuilder b(op);
    mlir::Value alive = load(b, op.getLoc());
    op.getMaskMutable().assign(op.getMask() ? b.create<arith::AndIOp>(op.getLoc(), op.getMask(), alive).getResult()
                                            : alive);
  }

  /// Everything else that touches memory runs under the mark and gives zeros without it.
  void guard(mlir::Operation* op) {
    mlir::OpBuilder b(op);
    mlir::Location loc = op->getLoc();
    auto branch = b.create<mlir::scf::IfOp>(loc, op->getResultTypes(), load(b, loc), op->getNumResults() != 0);
    op->replaceAllUsesWith(branch.getResults());
    mlir::Block* alive = branch.thenBlock();
    if (op->getNumResults() == 0) {
      op->moveBefore(alive->getTerminator());
      return;
    }
    op->moveBefore(alive, alive->end());
    auto inside = mlir::OpBuilder::atBlockEnd(alive);
    inside.create<mlir::scf::YieldOp>(loc, op->getResults());
    auto other = mlir::OpBuilder::atBlockEnd(branch.elseBlock());
    llvm::SmallVector<mlir::Value> zeros;
    for (mlir::Type type : op->getResultTypes())
      zeros.push_back(other.create<arith::ConstantOp>(loc, other.getZeroAttr(type)));
    other.create<mlir::scf::YieldOp>(loc, zeros);
  }

  void leave(mlir::scf::ConditionOp op) {
    mlir::OpBuilder b(op);
    op.getConditionMutable().assign(
        b.create<arith::AndIOp>(op.getLoc(), op.getCondition(), load(b, op.getLoc())).getResult());
  }

private:
  mlir::Value zero_, alive_;
};

bool isMet(mlir::Operation* op) {
  return mlir::isa<vxt::BarrierOp, vxt::GridBarrierOp, vxt::WarpBarrierOp, vxt::ShuffleOp, vxt::VoteOp, vxt::MmaOp,
                   vxt::LoadMatrixOp, vxt::FragmentLoadOp, vxt::FragmentStoreOp, vxt::FragmentMultiplyOp>(op);
}

bool isOwn(mlir::Value base) { return mlir::cast<vxt::PtrType>(base.getType()).getSpace() == ir::Space::Local; }

}  // namespace

void endThreads(vxt::KernelOp kernel) {
  bool asserts = false, meets = false;
  llvm::SmallVector<mlir::Operation*> ops;
  kernel.walk([&](mlir::Operation* op) {
    asserts |= mlir::isa<vxt::AssertOp>(op);
    meets |= isMet(op);
    ops.push_back(op);
  });
  if (!asserts || !meets)
    return;
  Marker marker(kernel);
  for (mlir::Operation* op : ops)
    llvm::TypeSwitch<mlir::Operation*>(op)
        .Case([&](vxt::AssertOp check) { marker.mark(check); })
        .Case<vxt::LoadOp, vxt::StoreOp>([&](auto access) {
          if (!isOwn(access.getBase()))
            marker.mask(access);
        })
        .Case<vxt::AtomicRmwOp, vxt::AtomicCasOp, vxt::AtomicLoadOp, vxt::AtomicStoreOp, vxt::AsyncCopyOp,
              vxt::PrintOp>([&](auto) { marker.guard(op); })
        .Case([&](mlir::scf::ConditionOp condition) { marker.leave(condition); });
}

}  // namespace vortex::target::gpu
