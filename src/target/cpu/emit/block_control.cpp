// Block-level control flow. Scalars become phis; a tile carried by a loop or chosen by a branch lives in one buffer that each iteration or
// side writes.
#include "target/cpu/emit/emitter.h"

#include "ir/vx.h"

#include <llvm/ADT/SetVector.h>
#include <mlir/Interfaces/SideEffectInterfaces.h>

namespace vortex::target::cpu::emit {

namespace scf = mlir::scf;
using llvm::Value;

static bool isTile(mlir::Value value) { return mlir::isa<mlir::RankedTensorType>(value.getType()); }

/// The values of an scf op's arguments or results, scalars apart from tiles.
static Values scalarsOf(Emitter& e, mlir::ValueRange values) {
  Values result;
  for (mlir::Value value : values)
    if (!isTile(value))
      result.push_back(e.scalar(value));
  return result;
}

static void setScalars(Emitter& e, mlir::ValueRange targets, llvm::ArrayRef<Value*> values) {
  unsigned next = 0;
  for (mlir::Value target : targets)
    if (!isTile(target))
      e.setScalar(target, values[next++]);
}

/// The value is computed from `argument`, looking through everything inside `body`.
static bool dependsOn(mlir::Value value, mlir::Value argument, mlir::Region& body) {
  llvm::SetVector<mlir::Value> reached;
  reached.insert(value);
  for (unsigned i = 0; i < reached.size(); ++i) {
    if (reached[i] == argument)
      return true;
    mlir::Operation* def = reached[i].getDefiningOp();
    if (!def)  // an argument of an inner loop: its values come through the loop's operands
      def = mlir::cast<mlir::BlockArgument>(reached[i]).getOwner()->getParentOp();
    if (!def || !body.isAncestor(def->getParentRegion()))
      continue;
    reached.insert(def->operand_begin(), def->operand_end());
    for (mlir::Region& region : def->getRegions())
      region.walk([&](mlir::Operation* inner) { reached.insert(inner->operand_begin(), inner->operand_end()); });
  }
  return false;
}

/// A loop-carried tile: its buffer, and the values that read it while the next ones are computed.
struct Carried {
  TileBuffer buffer;
  llvm::SmallVector<mlir::Value, 2> readers;
};

/// Writes the next values of loop-carried tiles over the current ones. A tile is written when no other pending one still needs its old
/// value; where they need each other, through a temporary.
static void writeCarried(Emitter& e, mlir::Operation* op, mlir::ValueRange yielded, llvm::ArrayRef<Carried> carried,
                         mlir::Region& body) {
  llvm::SmallVector<unsigned> pending;
  for (auto [i, value] : llvm::enumerate(yielded))
    if (isTile(value) && !llvm::is_contained(carried[i].readers, value))
      pending.push_back(i);
  llvm::SmallVector<std::pair<unsigned, TileBuffer>> saved;
  while (!pending.empty()) {
    auto isFree = [&](unsigned i) {
      return llvm::none_of(pending, [&](unsigned other) {
        return other != i && llvm::any_of(carried[i].readers,
                                          [&](mlir::Value reader) { return dependsOn(yielded[other], reader, body); });
      });
    };
    auto next = llvm::find_if(pending, isFree);
    if (next != pending.end()) {
      e.tiles->materializeInto(yielded[*next], carried[*next].buffer);
    } else {
      next = pending.begin();
      TileBuffer copy = e.allocateFor(op, yielded[*next]);
      e.tiles->materializeInto(yielded[*next], copy);
      saved.push_back({*next, copy});
    }
    pending.erase(next);
  }
  for (auto& [i, copy] : saved)
    e.copyTile(copy, carried[i].buffer);
}

/// Buffers with the initial values, one per argument (empty for scalars).
static llvm::SmallVector<Carried> carriedTiles(Emitter& e, mlir::Operation* op, mlir::ValueRange initial,
                                               mlir::ValueRange arguments) {
  llvm::SmallVector<Carried> carried(initial.size());
  for (auto [i, value] : llvm::enumerate(initial)) {
    if (!isTile(value))
      continue;
    carried[i] = {e.allocateFor(op, value), {arguments[i]}};
    e.tiles->materializeInto(value, carried[i].buffer);
    e.tiles->bind(arguments[i], carried[i].buffer);
  }
  return carried;
}

void Emitter::emitScfFor(mlir::Operation* operation) {
  auto op = mlir::cast<scf::ForOp>(operation);
  llvm::SmallVector<Carried> loopTiles = carriedTiles(*this, op, op.getInitArgs(), op.getRegionIterArgs());
  if (!mlir::isMemoryEffectFree(op))
    tiles->flushReads(op);
  Values results = emitFor(ir, scalar(op.getLowerBound()), scalar(op.getUpperBound()), scalar(op.getStep()),
                           scalarsOf(*this, op.getInitArgs()), [&](Value* iv, llvm::ArrayRef<Value*> carried) {
                             ScratchScope scope(*scratch);
                             tiles->enterScope();
                             setScalar(op.getInductionVar(), iv);
                             setScalars(*this, op.getRegionIterArgs(), carried);
                             emitBlock(*op.getBody());
                             writeCarried(*this, op, op.getYieldedValues(), loopTiles, op.getRegion());
                             Values next = scalarsOf(*this, op.getYieldedValues());
                             tiles->leaveScope();
                             return next;
                           });
  setScalars(*this, op.getResults(), results);
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    if (isTile(result))
      tiles->bind(result, loopTiles[i].buffer);
}

void Emitter::emitScfIf(mlir::Operation* operation) {
  auto op = mlir::cast<scf::IfOp>(operation);
  if (!mlir::isMemoryEffectFree(op))
    tiles->flushReads(op);
  llvm::SmallVector<TileBuffer> buffers(op.getNumResults());
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    if (isTile(result))
      buffers[i] = allocateFor(op, result);
  auto side = [&](mlir::Block* block) {
    if (!block)
      return Values{};
    ScratchScope scope(*scratch);
    tiles->enterScope();
    emitBlock(*block);
    mlir::ValueRange yielded = block->getTerminator()->getOperands();
    for (auto [i, value] : llvm::enumerate(yielded))
      if (isTile(value))
        tiles->materializeInto(value, buffers[i]);
    Values values = scalarsOf(*this, yielded);
    tiles->leaveScope();
    return values;
  };
  Values results =
      emitIf(ir, scalar(op.getCondition()), [&] { return side(op.thenBlock()); }, [&] { return side(op.elseBlock()); });
  setScalars(*this, op.getResults(), results);
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    if (isTile(result))
      tiles->bind(result, buffers[i]);
}

/// Carried tiles have one buffer each, forwarded ones another, so that the body may read the forwarded value while the next is written.
void Emitter::emitScfWhile(mlir::Operation* operation) {
  auto op = mlir::cast<scf::WhileOp>(operation);
  scf::ConditionOp condition = op.getConditionOp();
  llvm::SmallVector<Carried> carried = carriedTiles(*this, op, op.getInits(), op.getBeforeArguments());
  if (!mlir::isMemoryEffectFree(op))
    tiles->flushReads(op);
  llvm::SmallVector<TileBuffer> forwardedTiles(op.getNumResults());
  for (auto [i, value] : llvm::enumerate(condition.getArgs())) {
    if (!isTile(value))
      continue;
    auto argument = llvm::find(op.getBeforeArguments(), value);
    if (argument != op.getBeforeArguments().end()) {  // the same memory under a second name
      Carried& tile = carried[argument - op.getBeforeArguments().begin()];
      tile.readers.push_back(op.getAfterArguments()[i]);
      forwardedTiles[i] = tile.buffer;
    } else {
      forwardedTiles[i] = allocateFor(op, value);
    }
    tiles->bind(op.getAfterArguments()[i], forwardedTiles[i]);
  }
  Values results = emitWhile(
      ir, scalarsOf(*this, op.getInits()),
      [&](llvm::ArrayRef<Value*> args, Values& forwarded) {
        ScratchScope scope(*scratch);
        tiles->enterScope();
        setScalars(*this, op.getBeforeArguments(), args);
        emitBlock(*op.getBeforeBody());
        for (auto [i, value] : llvm::enumerate(condition.getArgs()))
          if (isTile(value) && !llvm::is_contained(op.getBeforeArguments(), value))
            tiles->materializeInto(value, forwardedTiles[i]);
        forwarded = scalarsOf(*this, condition.getArgs());
        Value* goesOn = scalar(condition.getCondition());
        tiles->leaveScope();
        return goesOn;
      },
      [&](llvm::ArrayRef<Value*> args) {
        ScratchScope scope(*scratch);
        tiles->enterScope();
        setScalars(*this, op.getAfterArguments(), args);
        emitBlock(*op.getAfterBody());
        writeCarried(*this, op, op.getYieldOp().getOperands(), carried, op.getAfter());
        Values next = scalarsOf(*this, op.getYieldOp().getOperands());
        tiles->leaveScope();
        return next;
      });
  setScalars(*this, op.getResults(), results);
  for (auto [i, result] : llvm::enumerate(op.getResults()))
    if (isTile(result))
      tiles->bind(result, forwardedTiles[i]);
}

}  // namespace vortex::target::cpu::emit
