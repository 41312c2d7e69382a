// What --check asks of barriers: docs/decisions/0188.
#include "msl/lift/distribute.h"

namespace vortex::msl::lift {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using llvm::SmallVector;
using mlir::Value;

/// Under a condition that threads decide each for themselves, or behind one that some leave by.
bool Distributor::canBeMissed(mlir::Operation* barrier) const {
  for (mlir::Operation* op = barrier->getParentOp(); op && op != function_; op = op->getParentOp()) {
    auto choice = llvm::dyn_cast<scf::IfOp>(op);
    auto loop = llvm::dyn_cast<scf::WhileOp>(op);
    if ((choice && uniformity_.isPerThread(choice.getCondition())) ||
        (loop && uniformity_.isPerThread(loop.getConditionOp().getCondition())))
      return true;
  }
  return false;
}

static uint32_t lineOf(mlir::Location at) {
  uint32_t line = 0;
  at->walk([&](mlir::Location each) {
    if (auto place = llvm::dyn_cast<mlir::FileLineColLoc>(each); place && line == 0)
      line = place.getLine();
    return mlir::WalkResult::advance();
  });
  return line;
}

/// Threads of the mask must have come to all barriers before; the others miss this one.
void Distributor::checkBarrier(mlir::Location at, Value mask) {
  if (!missed_)
    return;
  SmallVector<Value> masks;
  if (mask)
    masks.push_back(mask);
  Value first = start_->getResult(0);
  emitThreads({}, masks, {}, [&](mlir::OpBuilder& b, mlir::IRMapping&, auto elements) {
    Value none = zero(b, b.getI32Type());
    Value line = b.create<ir::LoadOp>(at, b.getI32Type(), missed_, first, Value(), false);
    Value isGood = b.create<arith::CmpIOp>(at, arith::CmpIPredicate::eq, line, none);
    if (mask) {
      Value isAbsent = b.create<arith::XOrIOp>(at, elements[0], b.create<arith::ConstantOp>(at, b.getBoolAttr(true)));
      isGood = b.create<arith::OrIOp>(at, isGood, isAbsent);
      Value isFirst = b.create<arith::CmpIOp>(at, arith::CmpIPredicate::eq, line, none);
      Value here = b.create<arith::ConstantOp>(at, b.getI32IntegerAttr(static_cast<int32_t>(lineOf(at))));
      b.create<ir::StoreOp>(at, here, missed_, first, b.create<arith::AndIOp>(at, isAbsent, isFirst), false);
    }
    b.create<ir::AssertOp>(at, isGood, "a thread comes to this barrier that missed the one in line {}", "E0604", line,
                           llvm::ArrayRef<bool>());
    return SmallVector<Value>();
  });
}

void Distributor::beginChecks() {
  bool anyMissed = false;
  function_.walk([&](ir::BarrierOp barrier) { anyMissed |= checksBarriers_ && canBeMissed(barrier); });
  if (!anyMissed)
    return;
  missed_ = b_.create<ir::AllocOp>(loc_, ir::ViewType::get({1}, b_.getI32Type(), ir::Space::Local), nullptr);
  emitThreads({}, {}, {}, [&](mlir::OpBuilder& b, mlir::IRMapping&, auto) {
    b.create<ir::StoreOp>(loc_, zero(b, b.getI32Type()), missed_, start_->getResult(0), Value(), false);
    return SmallVector<Value>();
  });
}

}  // namespace vortex::msl::lift
