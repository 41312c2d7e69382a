// Structured control flow, at block level and inside regions. Scalars are carried as they are; tiles as the registers their owner chooses.
#include "target/gpu/access.h"
#include "target/gpu/lowering.h"

#include <mlir/Interfaces/SideEffectInterfaces.h>

namespace vortex::target::gpu {

namespace scf = mlir::scf;

static bool isTile(Value value) { return mlir::isa<mlir::RankedTensorType>(value.getType()); }

/// Values to carry for `sources` where `targets` (arguments or results) receive them, and how many belong to each.
Values Lowering::registersFor(mlir::ValueRange sources, mlir::ValueRange targets, llvm::SmallVector<unsigned>& counts) {
  Values result;
  counts.clear();
  for (auto [source, target] : llvm::zip(sources, targets)) {
    if (isTile(source)) {
      Values registers = tiles_->registersFor(source, target);
      counts.push_back(registers.size());
      result.append(registers);
    } else {
      counts.push_back(1);
      result.push_back(scalar(source));
    }
  }
  return result;
}

void Lowering::bindAll(mlir::ValueRange targets, mlir::ValueRange like, mlir::ValueRange values,
                       llvm::ArrayRef<unsigned> counts) {
  unsigned next = 0;
  for (auto [target, model, count] : llvm::zip(targets, like, counts)) {
    if (isTile(target))
      tiles_->bindRegisters(target, model, Values(values.slice(next, count)));
    else
      setScalar(target, values[next]);
    next += count;
  }
}

/// What the accesses of a block leave pending when it starts from `hazards`' state; emits nothing.
static void simulate(Hazards& hazards, mlir::Block& block) {
  for (mlir::Operation& op : block) {
    if (mlir::isa<ir::BarrierOp>(op)) {
      hazards.barrier();
      continue;
    }
    if (mlir::isa<ir::ThreadsOp>(op)) {
      op.walk([&](mlir::Operation* inner) {
        forEachAccess(inner, [&](Value view, bool isWrite) {
          isWrite ? hazards.write(rootOf(view), Hazards::Kind::Region)
                  : hazards.read(rootOf(view), Hazards::Kind::Region);
        });
      });
      continue;
    }
    forEachAccess(
        &op, [&](Value view, bool isWrite) { isWrite ? hazards.write(rootOf(view)) : hazards.read(rootOf(view)); });
    Hazards::State before = hazards.state();
    for (mlir::Region& region : op.getRegions())
      for (mlir::Block& nested : region) {
        Hazards inner([] {});
        inner.restore(before);
        simulate(inner, nested);
        hazards.merge(inner.state());
      }
  }
}

/// The state a loop's body starts from: before the first iteration or after any other.
void Lowering::enterLoop(llvm::ArrayRef<mlir::Block*> blocks) {
  if (region_)
    return;
  Hazards around([] {});
  around.restore(hazards_.state());
  for (mlir::Block* block : blocks)
    simulate(around, *block);
  hazards_.merge(around.state());
}

/// Scratch used in the body is used again by the next iteration, which enterLoop could not foresee, and so is the memory of what is carried.
void Lowering::leaveLoop(size_t firstPiece, mlir::ValueRange carried) {
  if (region_)
    return;
  if (llvm::any_of(carried, [&](Value target) { return isTile(target) && tiles_->isPending(target); }))
    return hazards_.barrier();
  const auto& pieces = shared_.pieces();
  for (size_t i = firstPiece; i < pieces.size(); ++i)
    if (hazards_.isPending(pieces[i].root)) {
      hazards_.barrier();
      return;
    }
}

void Lowering::lowerFor(scf::ForOp op) {
  mlir::Location at = loc;
  if (!region_ && !mlir::isMemoryEffectFree(op))
    tiles_->flushReads(op);
  llvm::SmallVector<unsigned> counts;
  Values initial = registersFor(op.getInitArgs(), op.getRegionIterArgs(), counts);
  enterLoop({op.getBody()});
  size_t firstPiece = shared_.pieces().size();
  Values results = emitFor(scalar(op.getLowerBound()), scalar(op.getUpperBound()), scalar(op.getStep()), initial,
                           [&](Value iv, mlir::ValueRange carried) {
                             SharedScope scope(shared_);
                             enterScope();
                             setScalar(op.getInductionVar(), iv);
                             bindAll(op.getRegionIterArgs(), op.getRegionIterArgs(), carried, counts);
                             lowerBlock(*op.getBody());
                             loc = at;
                             finishCopies(*op.getBody());
                             Values next = registersFor(op.getYieldedValues(), op.getRegionIterArgs(), counts);
                             leaveScope();
                             leaveLoop(firstPiece, op.getRegionIterArgs());
                             return next;
                           });
  bindAll(op.getResults(), op.getRegionIterArgs(), results, counts);
}

void Lowering::lowerIf(scf::IfOp op) {
  mlir::Location at = loc;
  if (!region_ && !mlir::isMemoryEffectFree(op))
    tiles_->flushReads(op);
  reserveResults(op);
  llvm::SmallVector<unsigned> counts;
  auto side = [&](mlir::Block* block) {
    SharedScope scope(shared_);
    enterScope();
    lowerBlock(*block);
    loc = at;
    finishCopies(*block);
    Values values = registersFor(block->getTerminator()->getOperands(), op.getResults(), counts);
    leaveScope();
    return values;
  };
  Values results;
  if (op.elseBlock()) {
    results =
        emitIf(scalar(op.getCondition()), [&] { return side(op.thenBlock()); }, [&] { return side(op.elseBlock()); });
  } else {
    emitIf(scalar(op.getCondition()), [&] { side(op.thenBlock()); });
  }
  bindAll(op.getResults(), op.getResults(), results, counts);
}

void Lowering::lowerWhile(scf::WhileOp op) {
  mlir::Location at = loc;
  if (!region_ && !mlir::isMemoryEffectFree(op))
    tiles_->flushReads(op);
  reserveResults(op);
  llvm::SmallVector<unsigned> carriedCounts, forwardedCounts;
  Values initial = registersFor(op.getInits(), op.getBeforeArguments(), carriedCounts);
  enterLoop({op.getBeforeBody(), op.getAfterBody()});
  size_t firstPiece = shared_.pieces().size();

  // Types of forwarded values are known after the first region is lowered: the op is rebuilt around its regions.
  auto draft = b.create<scf::WhileOp>(at, mlir::TypeRange{}, mlir::ValueRange{}, nullptr, nullptr);
  draft.getBefore().getBlocks().clear();
  draft.getAfter().getBlocks().clear();
  mlir::OpBuilder::InsertionGuard guard(b);
  auto locations = [&](mlir::ValueRange values) { return llvm::SmallVector<mlir::Location>(values.size(), at); };
  mlir::TypeRange initialTypes = mlir::ValueRange(initial).getTypes();
  mlir::Block* before = b.createBlock(&draft.getBefore(), {}, initialTypes, locations(initial));
  Values forwarded;
  {
    SharedScope scope(shared_);
    enterScope();
    bindAll(op.getBeforeArguments(), op.getBeforeArguments(), before->getArguments(), carriedCounts);
    lowerBlock(*op.getBeforeBody());
    loc = at;
    scf::ConditionOp condition = op.getConditionOp();
    forwarded = registersFor(condition.getArgs(), op.getAfterArguments(), forwardedCounts);
    leaveScope();
    b.create<scf::ConditionOp>(at, scalar(condition.getCondition()), forwarded);
  }
  Hazards::State afterCondition = hazards_.state();
  llvm::SmallVector<mlir::Type> forwardedTypes(mlir::ValueRange(forwarded).getTypes());
  mlir::Block* after = b.createBlock(&draft.getAfter(), {}, forwardedTypes, locations(forwarded));
  {
    SharedScope scope(shared_);
    enterScope();
    bindAll(op.getAfterArguments(), op.getAfterArguments(), after->getArguments(), forwardedCounts);
    lowerBlock(*op.getAfterBody());
    loc = at;
    finishCopies(*op.getAfterBody());
    Values next = registersFor(op.getYieldOp().getOperands(), op.getBeforeArguments(), carriedCounts);
    leaveScope();
    llvm::SmallVector<Value> flowing(op.getBeforeArguments());
    llvm::append_range(flowing, op.getAfterArguments());
    leaveLoop(firstPiece, flowing);
    b.create<scf::YieldOp>(at, next);
  }
  hazards_.restore(afterCondition);
  b.setInsertionPoint(draft);
  auto loop = b.create<scf::WhileOp>(at, forwardedTypes, initial, nullptr, nullptr);
  loop.getBefore().takeBody(draft.getBefore());
  loop.getAfter().takeBody(draft.getAfter());
  draft.erase();
  b.setInsertionPointAfter(loop);
  bindAll(op.getResults(), op.getAfterArguments(), loop.getResults(), forwardedCounts);
}

void Lowering::reserveResults(mlir::Operation* op) {
  if (!region_)
    tiles_->reserveResults(op);
}
void Lowering::enterScope() {
  if (!region_)
    tiles_->enterScope();
}
void Lowering::leaveScope() {
  if (!region_)
    tiles_->leaveScope();
}

}  // namespace vortex::target::gpu
