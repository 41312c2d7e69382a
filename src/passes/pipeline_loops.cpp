// before: for i { barrier; copy window(i) to buffer; commit; wait 0; barrier; rest(buffer) }
//
// after:  for j in 0 .. n - 1 { if j is an iteration { copy window(j) to slot j }; commit }
//         for i { wait n - 2; barrier; if i + n - 1 is an iteration { copy window(i + n - 1) to slot (i + n - 1) % n }; commit; rest(slot i % n) }
//
// Iteration i waits for its own group: n - 2 younger ones may be in flight. Its barrier also says that all threads are done with iteration i - 1, whose
// slot is the one that is filled then. Groups of iterations beyond the last are empty, so that counts of groups stay the same.
#include "passes/pipeline_loops.h"

#include "ir/root_view.h"
#include "ir/vx.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace vortex::passes {

using namespace mlir;

namespace {

class PipelinedLoop {
public:
  PipelinedLoop(scf::ForOp loop, int64_t stages) : loop_(loop), stages_(stages), b_(loop), loc_(loop.getLoc()) {}

  LogicalResult run() {
    if (failed(collect()) || failed(collectBuffers()))
      return failure();
    makeSlots();
    emitPrologue();
    rewriteBody();
    return success();
  }

private:
  InFlightDiagnostic refuse(Operation* op) { return op->emitError("`@pipeline`: "); }

  /// Copies, commit, wait and barrier, and before them nothing but what computes where the copies are.
  LogicalResult collect() {
    Block& body = *loop_.getBody();
    if (!loop_.walk([](ir::StageCopyOp) { return WalkResult::interrupt(); }).wasInterrupted())
      return refuse(loop_) << "the loop stages nothing";
    for (Operation& op : body) {
      auto hidden = op.walk([&](Operation* inner) {
        return inner != &op && isa<ir::StageCopyOp, ir::StageCommitOp, ir::StageWaitOp>(inner) ? WalkResult::interrupt()
                                                                                               : WalkResult::advance();
      });
      if (hidden.wasInterrupted())
        return refuse(&op) << "the loop copies under a condition or in a loop of its own";
      if (auto copy = dyn_cast<ir::StageCopyOp>(op)) {
        if (commit_)
          return refuse(copy) << "a copy that starts after the sync_block() of its iteration runs ahead already";
        copies_.push_back(copy);
      } else if (auto commit = dyn_cast<ir::StageCommitOp>(op)) {
        if (commit_)
          return refuse(commit) << "the loop completes copies in more than one sync_block()";
        commit_ = commit;
      } else if (auto wait = dyn_cast<ir::StageWaitOp>(op)) {
        if (wait_ || wait.getPending() != 0 || !commit_)
          return refuse(wait) << "the loop's copies run ahead already";
        wait_ = wait;
      } else if (isa<ir::BarrierOp>(op)) {
        if (wait_ && !barrier_)
          barrier_ = cast<ir::BarrierOp>(op);
        else if (!wait_)
          early_.push_back(&op);
      } else if (!barrier_ && !isPosition(&op)) {
        return refuse(&op) << "the loop does other work before its copies are complete";
      }
    }
    if (copies_.empty() || !barrier_)
      return refuse(loop_) << "the loop does not complete its copies";
    return collectPositions();
  }

  /// Computes, or reads global memory, and may do so before its iteration.
  static bool isPosition(Operation* op) {
    return op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
           (isPure(op) || isa<ir::LoadOp, ir::AllocOp>(op));
  }

  /// What the copies' places follow from, in order.
  LogicalResult collectPositions() {
    llvm::SetVector<Operation*> needed;
    SmallVector<Value> open;
    for (ir::StageCopyOp copy : copies_) {
      open.push_back(copy.getSource());
      llvm::append_range(open, copy.getOffsets());
    }
    while (!open.empty()) {
      Value value = open.pop_back_val();
      if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == loop_.getBody()) {
        if (argument != loop_.getInductionVar())
          return refuse(copies_[0]) << "what is copied depends on what iterations carry";
        continue;
      }
      Operation* op = value.getDefiningOp();
      if (!op || op->getBlock() != loop_.getBody() || !needed.insert(op))
        continue;
      llvm::append_range(open, op->getOperands());
    }
    SmallVector<Value> read;
    for (ir::StageCopyOp copy : copies_)
      read.push_back(ir::rootView(copy.getSource()));
    for (Operation& op : *loop_.getBody())
      if (needed.contains(&op)) {
        positions_.push_back(&op);
        if (auto load = dyn_cast<ir::LoadOp>(op))
          read.push_back(ir::rootView(load.getView()));
      }
    for (Value view : read)
      if (cast<ir::ViewType>(view.getType()).getSpace() != ir::Space::Global)
        return refuse(copies_[0]) << "what is copied, or where, is not in global memory";
    return verifyUnwritten(read);
  }

  /// Iterations must not change what later ones copy.
  LogicalResult verifyUnwritten(ArrayRef<Value> read) {
    Operation* writer = nullptr;
    loop_.walk([&](Operation* op) {
      if (isa<ir::StageCopyOp, ir::TileLoadOp, ir::LoadOp, ir::DimOp, ir::SubviewOp>(op))
        return;
      for (Value operand : op->getOperands())
        if (isa<ir::ViewType>(operand.getType()) && llvm::is_contained(read, ir::rootView(operand)))
          writer = op;
    });
    return writer ? LogicalResult(refuse(writer) << "the loop writes what it copies") : success();
  }

  LogicalResult collectBuffers() {
    for (ir::StageCopyOp copy : copies_) {
      auto alloc = copy.getDestination().getDefiningOp<ir::AllocOp>();
      if (!alloc)
        return refuse(copy) << "the loop copies into a part of a tensor: its slots are those that the code has";
      const std::string name = alloc.getName().value_or("a tensor").str();
      if (loop_->isAncestor(alloc))
        return refuse(copy) << "`" << name << "` is declared in the loop; declare it before";
      if (alloc.getResult().getType().getSwizzle())
        return refuse(copy) << "`" << name << "` has a layout of its own";
      for (Operation* user : alloc->getUsers()) {
        Operation* top = loop_.getBody()->findAncestorOpInBlock(*user);
        if (!top)
          return refuse(user) << "`" << name << "` is used outside of the loop that stages it";
        if (top == copy)
          continue;
        if (!barrier_->isBeforeInBlock(top))
          return refuse(user) << "`" << name << "` is used before its copy is complete";
      }
      buffers_.push_back(alloc);
    }
    return success();
  }

  //===-- rewriting ---------------------------------------------------------------------------------------------===//

  Value constant(int64_t value) { return b_.create<arith::ConstantIndexOp>(loc_, value); }
  Value integer(ir::IntKind kind, Value a, Value b) { return b_.create<ir::IntOp>(loc_, a.getType(), kind, a, b); }
  Value later(Value from, Value iterations) {
    return b_.create<arith::AddIOp>(loc_, from, b_.create<arith::MulIOp>(loc_, iterations, loop_.getStep()));
  }

  void makeSlots() {
    for (ir::AllocOp buffer : buffers_) {
      // At the same place: what lies where in shared memory is decided by the order of declarations.
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPoint(buffer);
      auto type = buffer.getResult().getType();
      SmallVector<int64_t> shape{stages_};
      llvm::append_range(shape, type.getShape());
      auto all = b_.create<ir::AllocOp>(
          buffer.getLoc(), ir::ViewType::get(shape, type.getElementType(), type.getSpace()), buffer.getNameAttr());
      if (auto written = buffer->getAttrOfType<StringAttr>("vx.type"))
        all->setAttr("vx.type", b_.getStringAttr("[" + written.getValue() + "; " + Twine(stages_) + "]"));
      slots_.push_back(all);
    }
  }

  Value slot(size_t buffer, Value number) {
    auto type = cast<ir::ViewType>(slots_[buffer].getType());
    SmallVector<Value> offsets(static_cast<size_t>(type.getRank()), constant(0));
    offsets[0] = number;
    return b_.create<ir::SubviewOp>(loc_, buffers_[buffer].getResult().getType(), slots_[buffer], offsets, ValueRange(),
                                    ArrayRef<int64_t>{0});
  }

  /// Of the iteration at `position`, if there is one, to slot `number`.
  void emitCopies(Value position, Value number) {
    Value isIteration = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, position, loop_.getUpperBound());
    auto branch = b_.create<scf::IfOp>(loc_, isIteration, false);
    {
      OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToStart(branch.thenBlock());
      IRMapping mapping;
      mapping.map(loop_.getInductionVar(), position);
      for (Operation* op : positions_)
        b_.clone(*op, mapping);
      for (auto [i, copy] : llvm::enumerate(copies_)) {
        mapping.map(copy.getDestination(), slot(i, number));
        b_.clone(*copy, mapping);
      }
    }
    b_.create<ir::StageCommitOp>(loc_);
  }

  void emitPrologue() {
    // What was in flight before is not counted by the loop's waits.
    b_.create<ir::StageWaitOp>(loc_, 0);
    b_.create<ir::BarrierOp>(loc_);
    for (int64_t stage = 0; stage + 1 < stages_; ++stage)
      emitCopies(later(loop_.getLowerBound(), constant(stage)), constant(stage));
  }

  void rewriteBody() {
    b_.setInsertionPoint(wait_);
    b_.create<ir::StageWaitOp>(loc_, stages_ - 2);
    b_.setInsertionPointAfter(barrier_);
    Value position = loop_.getInductionVar(), count = constant(stages_);
    Value number =
        integer(ir::IntKind::DivU, b_.create<arith::SubIOp>(loc_, position, loop_.getLowerBound()), loop_.getStep());
    Value own = integer(ir::IntKind::RemU, number, count);
    Value next = integer(ir::IntKind::RemU, b_.create<arith::AddIOp>(loc_, number, constant(stages_ - 1)), count);
    emitCopies(later(position, constant(stages_ - 1)), next);
    for (auto [i, buffer] : llvm::enumerate(buffers_)) {
      copies_[i].erase();
      buffer.getResult().replaceAllUsesWith(slot(i, own));
      buffer.erase();
    }
    commit_.erase();
    wait_.erase();
    for (Operation* op : early_)
      op->erase();
  }

  scf::ForOp loop_;
  int64_t stages_;
  OpBuilder b_;
  Location loc_;
  SmallVector<ir::StageCopyOp> copies_;
  SmallVector<Operation*> positions_, early_;  ///< computing where copies are; barriers before them
  SmallVector<ir::AllocOp> buffers_;           ///< by copy
  SmallVector<Value> slots_;
  ir::StageCommitOp commit_;
  ir::StageWaitOp wait_;
  ir::BarrierOp barrier_;
};

struct PipelineLoopsPass : PassWrapper<PipelineLoopsPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PipelineLoopsPass)
  StringRef getArgument() const override { return "vx-pipeline-loops"; }
  StringRef getDescription() const override { return "runs the copies of loops ahead of their iterations"; }
  void runOnOperation() override {
    if (failed(pipelineLoops(getOperation())))
      signalPassFailure();
  }
};

}  // namespace

LogicalResult pipelineLoops(ModuleOp module) {
  SmallVector<scf::ForOp> loops;
  module.walk([&](scf::ForOp loop) {
    if (loop->hasAttr(kPipelineStages))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops) {
    const int64_t stages = loop->getAttrOfType<IntegerAttr>(kPipelineStages).getInt();
    loop->removeAttr(kPipelineStages);
    if (stages > 1 && failed(PipelinedLoop(loop, stages).run()))
      return failure();
  }
  return success();
}

std::unique_ptr<Pass> createPipelineLoopsPass() { return std::make_unique<PipelineLoopsPass>(); }

}  // namespace vortex::passes
