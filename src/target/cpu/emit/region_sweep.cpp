// Loops that step by the number of threads, `for (i = 0; i < n; i += threads) … x[i + thread] …`: the loop outside, the warps inside.
//
// Warp after warp would go over the row as often as there are warps, each time in pieces of a warp that lie a block apart, which processors do
// not prefetch: three-pass rows of 16 KB from memory took 1.5 to 2.5 times the processor time of the same rows in order. The region becomes a
// sequence of segments, each for all warps: what is between the loops, and the body of a loop for one step. What a later segment needs is
// computed again where that is index arithmetic, else kept in memory for each warp, which costs a store and a load that the first-level
// cache serves. Threads of a region have no order among warps, so that the result is the same.
#include "target/cpu/emit/region_sweep.h"

#include "target/cpu/emit/elementwise.h"
#include "target/cpu/emit/region_emitter.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/IR/Matchers.h>

namespace vortex::target::cpu::emit {

namespace scf = mlir::scf;
using llvm::Value;

static constexpr uint64_t kMostKeptBytes = 16 << 10;  ///< of a block, on the stack; half a first-level cache

/// Index arithmetic and facts of the launch: as cheap as a load.
static bool isCheapToRepeat(mlir::Operation* op) {
  if (mlir::isa<ir::DimOp, ir::SubviewOp, ir::BlockIdOp, ir::GridDimOp, ir::BlockDimOp>(op))
    return true;
  if (!isElementwise(op))
    return false;
  return op->hasTrait<mlir::OpTrait::ConstantLike>() || op->getResult(0).getType().isIntOrIndex();
}

/// The operation of the region's own block that a value used in it comes from; null: an argument, or from outside.
static mlir::Operation* definedIn(mlir::Block& block, mlir::Value value) {
  mlir::Operation* op = value.getDefiningOp();
  return op && op->getBlock() == &block ? op : nullptr;
}

namespace {

class Planner {
public:
  Planner(ir::ThreadsOp region, const RegionAnalysis& analysis, uint64_t threads)
      : block_(region.getBody().front()), analysis_(analysis), threads_(threads) {}

  std::optional<Sweep> plan() {
    if (hasOrder())
      return std::nullopt;
    Sweep sweep;
    sweep.segments.emplace_back();
    for (mlir::Operation& op : block_) {
      auto loop = mlir::dyn_cast<scf::ForOp>(op);
      if (!loop || !sweepsMemory(loop)) {
        sweep.segments.back().ops.push_back(&op);
        continue;
      }
      sweep.segments.emplace_back().loop = loop;
      sweep.segments.emplace_back();
    }
    if (sweep.segments.size() == 1)
      return std::nullopt;
    for (size_t i = 0; i < sweep.segments.size(); ++i)
      for (mlir::Operation* op : sweep.segments[i].ops)
        segmentOf_[op] = i;
    for (size_t i = 0; i < sweep.segments.size(); ++i)
      if (sweep.segments[i].loop)
        segmentOf_[sweep.segments[i].loop] = i;
    for (size_t i = 0; i < sweep.segments.size(); ++i)
      if (!planSegment(sweep, i))
        return std::nullopt;
    return sweep;
  }

private:
  /// What warps do is seen in an order.
  bool hasOrder() {
    return block_
        .walk([](mlir::Operation* op) {
          return mlir::isa<ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp, ir::AtomicStoreOp, ir::FenceOp,
                           ir::PrintOp, ir::AssertOp, ir::AllocOp>(op)
                     ? mlir::WalkResult::interrupt()
                     : mlir::WalkResult::advance();
        })
        .wasInterrupted();
  }

  bool sweepsMemory(scf::ForOp loop) {
    llvm::APInt step;
    if (analysis_.diverges(loop) || !mlir::matchPattern(loop.getStep(), mlir::m_ConstantInt(&step)) ||
        step.getZExtValue() != threads_ || !boundsAreKnown(loop))
      return false;
    const auto isRow = [&](mlir::ValueRange indices) {
      return llvm::any_of(indices,
                          [&](mlir::Value index) { return analysis_.form(index) == Form{Form::Kind::Affine, 1}; });
    };
    return loop
        .walk([&](mlir::Operation* op) {
          auto load = mlir::dyn_cast<ir::LoadOp>(op);
          auto store = mlir::dyn_cast<ir::StoreOp>(op);
          return (load && isRow(load.getIndices())) || (store && isRow(store.getIndices()))
                     ? mlir::WalkResult::interrupt()
                     : mlir::WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Outside of the warps: computed from what is there.
  bool boundsAreKnown(scf::ForOp loop) {
    llvm::SmallVector<mlir::Operation*> chain;
    return chainOf(loop.getLowerBound(), chain) && chainOf(loop.getUpperBound(), chain);
  }

  bool chainOf(mlir::Value value, llvm::SmallVectorImpl<mlir::Operation*>& chain) {
    mlir::Operation* op = definedIn(block_, value);
    if (!op)
      return !mlir::isa<mlir::BlockArgument>(value) || value.getParentBlock() != &block_;
    if (!isCheapToRepeat(op) || mlir::isa<ir::SubviewOp>(op))
      return false;
    for (mlir::Value operand : op->getOperands())
      if (!chainOf(operand, chain))
        return false;
    if (!llvm::is_contained(chain, op))
      chain.push_back(op);
    return true;
  }

  bool planSegment(Sweep& sweep, size_t index) {
    Segment& segment = sweep.segments[index];
    bool isPossible = true;
    const auto needAll = [&](mlir::Operation* op) {
      op->walk([&](mlir::Operation* inner) {
        for (mlir::Value operand : inner->getOperands())
          isPossible = isPossible && need(sweep, index, operand);
      });
    };
    if (segment.loop) {
      (void)chainOf(segment.loop.getLowerBound(), segment.bounds);
      (void)chainOf(segment.loop.getUpperBound(), segment.bounds);
      needAll(segment.loop);
    }
    for (mlir::Operation* op : segment.ops)
      needAll(op);
    llvm::sort(segment.again, [](mlir::Operation* a, mlir::Operation* b) { return a->isBeforeInBlock(b); });
    return isPossible;
  }

  /// False: a value that is neither cheap to compute again nor one that memory can hold.
  bool need(Sweep& sweep, size_t index, mlir::Value value) {
    mlir::Operation* op = definedIn(block_, value);
    if (!op || segmentOf_.lookup(op) == index)
      return true;
    Segment& segment = sweep.segments[index];
    if (isCheapToRepeat(op)) {
      if (llvm::is_contained(segment.again, op))
        return true;
      segment.again.push_back(op);
      return llvm::all_of(op->getOperands(), [&](mlir::Value operand) { return need(sweep, index, operand); });
    }
    if (mlir::isa<ir::ViewType>(value.getType()))
      return false;
    segment.loaded.insert(value);
    sweep.kept.insert(value);
    return true;
  }

  mlir::Block& block_;
  const RegionAnalysis& analysis_;
  uint64_t threads_;
  llvm::DenseMap<mlir::Operation*, size_t> segmentOf_;
};

}  // namespace

std::optional<Sweep> planSweep(ir::ThreadsOp region, const RegionAnalysis& analysis, const RegionShape& shape,
                               Value* threads) {
  auto* count = llvm::dyn_cast<llvm::ConstantInt>(threads);
  if (!count || shape.rows || shape.width == 1 || count->getZExtValue() < shape.width)
    return std::nullopt;
  return Planner(region, analysis, count->getZExtValue()).plan();
}

//===-- emission ----------------------------------------------------------------------------------------------===//

/// The form in which a value is kept: that of the places where it merges.
Form RegionEmitter::keptForm(mlir::Value value) const {
  if (auto loop = value.getDefiningOp<scf::ForOp>())
    return analysis_.form(loop.getRegionIterArg(mlir::cast<mlir::OpResult>(value).getResultNumber()));
  return analysis_.form(value);
}

llvm::AllocaInst* RegionEmitter::slotFor(mlir::Value value, Form form) {
  const bool isVector = form.kind == Form::Kind::Varying || form.kind == Form::Kind::Unknown;
  llvm::Type* type = valueType(e_.context(), value.getType(), isVector ? shape_.width : 1);
  const uint64_t warps = (llvm::cast<llvm::ConstantInt>(threads_)->getZExtValue() + shape_.width - 1) / shape_.width;
  return entryAlloca(ir_, llvm::ArrayType::get(type, warps));
}

Value* RegionEmitter::slotOfWarp(llvm::AllocaInst* slot) {
  Value* warp = ir_.CreateUDiv(linear_.value, ir_.getInt64(shape_.width));
  return ir_.CreateInBoundsGEP(slot->getAllocatedType(), slot, {ir_.getInt64(0), warp});
}

void RegionEmitter::keep(llvm::AllocaInst* slot, Value* packed) {
  ir_.CreateAlignedStore(packed, slotOfWarp(slot), llvm::Align(1));
}

Value* RegionEmitter::kept(llvm::AllocaInst* slot) {
  return ir_.CreateAlignedLoad(slot->getAllocatedType()->getArrayElementType(), slotOfWarp(slot), llvm::Align(1));
}

/// The operation in the block, at any depth, that a value comes from; null: it is there before.
static mlir::Operation* withinBlock(mlir::Block& block, mlir::Value value) {
  mlir::Operation* op = value.getDefiningOp();
  return op && block.getParent()->isAncestor(op->getParentRegion()) ? op : nullptr;
}

/// The value can be computed where the block begins, and that is cheap.
static bool isKnownBefore(mlir::Block& block, mlir::Value value) {
  mlir::Operation* op = withinBlock(block, value);
  if (!op)  // no counter of a loop
    return !mlir::isa<mlir::BlockArgument>(value) || !block.getParent()->isProperAncestor(value.getParentRegion());
  return isCheapToRepeat(op) && (op->getBlock() == &block || mlir::isPure(op)) &&
         llvm::all_of(op->getOperands(), [&](mlir::Value operand) { return isKnownBefore(block, operand); });
}

/// Comparisons of a block that most warps pass with all lanes: of index arithmetic that grows along the lanes, as `start + lane < n`.
llvm::SmallVector<mlir::Operation*> RegionEmitter::boundsChecks(mlir::Block& block) const {
  llvm::SmallVector<mlir::Operation*> checks;
  for (mlir::Operation& op : block)
    if (auto compare = mlir::dyn_cast<mlir::arith::CmpIOp>(op);
        compare && isKnownBefore(block, compare.getResult()) &&
        (analysis_.form(compare.getLhs()).kind == Form::Kind::Affine ||
         analysis_.form(compare.getRhs()).kind == Form::Kind::Affine))
      checks.push_back(compare);
  return checks;
}

/// Guarded accesses in a block whose indices are known where it begins.
llvm::SmallVector<mlir::Operation*> RegionEmitter::guardedAccesses(mlir::Block& block) const {
  llvm::SmallVector<mlir::Operation*> accesses;
  block.walk([&](mlir::Operation* op) {
    llvm::TypeSwitch<mlir::Operation*>(op).Case<ir::LoadOp, ir::StoreOp>([&](auto access) {
      if (access.getGuarded() && !withinBlock(block, access.getView()) &&
          llvm::all_of(access.getIndices(), [&](mlir::Value index) { return isKnownBefore(block, index); }))
        accesses.push_back(op);
    });
  });
  return accesses;
}

void RegionEmitter::emitChain(mlir::Block& block, mlir::Value value, llvm::DenseSet<mlir::Operation*>& emitted) {
  mlir::Operation* op = withinBlock(block, value);
  if (!op || !emitted.insert(op).second)
    return;
  for (mlir::Value operand : op->getOperands())
    emitChain(block, operand, emitted);
  emitOp(op);
}

/// A scalar condition under which all lanes of a guarded access are inside; null: there is no cheap one.
Value* RegionEmitter::provesInside(mlir::Value viewed, mlir::ValueRange indices) {
  const RegionView window = view(viewed);
  Value* proof = nullptr;
  for (auto [index, extent] : llvm::zip(indices, window.extents)) {
    const Lane at = lane(index);
    Value* inside = at.isUniform() && extent.isUniform() ? ir_.CreateICmpULT(at.value, extent.value)
                                                         : math_.provesAll(llvm::CmpInst::ICMP_ULT, at, extent);
    if (!inside)
      return nullptr;
    proof = conjunction(ir_, proof, inside);
  }
  return proof;
}

/// Tests of single accesses and conditions stand between little arithmetic as much as it takes itself.
bool RegionEmitter::isWorthTwoVersions(mlir::Block& block) const {
  constexpr unsigned kMostOperations = 80;
  unsigned count = 0;
  return shape_.width != 1 && !mask_ &&
         !block
              .walk([&](mlir::Operation* op) {
                return mlir::isa<mlir::LoopLikeOpInterface>(op) || ++count > kMostOperations
                           ? mlir::WalkResult::interrupt()
                           : mlir::WalkResult::advance();
              })
              .wasInterrupted();
}

/// The block once for warps whose lanes all are inside of its bounds, without masks, and once for the others.
void RegionEmitter::emitBothVersions(mlir::Block& block, llvm::function_ref<void()> atEnd) {
  const auto version = [&] {
    emitBlock(block);
    atEnd();
    return Values{};
  };
  llvm::SmallVector<mlir::Operation*> proven;
  Value* all = nullptr;
  llvm::DenseSet<mlir::Operation*> emitted;
  const auto prove = [&](mlir::Operation* op, Value* condition) {
    if (!condition)
      return;
    proven.push_back(op);
    all = conjunction(ir_, all, condition);
  };
  for (mlir::Operation* check : boundsChecks(block)) {
    emitChain(block, check->getResult(0), emitted);
    prove(check, lane(check->getResult(0)).allTrue);
  }
  for (mlir::Operation* op : guardedAccesses(block))
    llvm::TypeSwitch<mlir::Operation*>(op).Case<ir::LoadOp, ir::StoreOp>([&](auto access) {
      for (mlir::Value index : access.getIndices())
        emitChain(block, index, emitted);
      prove(op, provesInside(access.getView(), access.getIndices()));
    });
  if (!all) {
    version();
    return;
  }
  emit::emitIf(
      ir_, all,
      [&] {
        proven_.insert(proven.begin(), proven.end());
        version();
        for (mlir::Operation* op : proven)
          proven_.erase(op);
        return Values{};
      },
      version);
}

/// False, and nothing is emitted: too much would have to be kept.
bool RegionEmitter::emitSwept(const Sweep& sweep) {
  const uint64_t threads = llvm::cast<llvm::ConstantInt>(threads_)->getZExtValue();
  uint64_t values = sweep.kept.size();
  for (const Segment& segment : sweep.segments)
    if (scf::ForOp loop = segment.loop)
      values += loop.getNumRegionIterArgs();
  if (values * threads * 8 > kMostKeptBytes)
    return false;
  llvm::DenseMap<mlir::Value, llvm::AllocaInst*> slots;
  for (mlir::Value value : sweep.kept)
    if (!value.getDefiningOp<scf::ForOp>())
      slots[value] = slotFor(value, keptForm(value));
  for (const Segment& segment : sweep.segments)
    if (scf::ForOp loop = segment.loop)
      for (auto [argument, result] : llvm::zip(loop.getRegionIterArgs(), loop.getResults()))
        slots[argument] = slots[result] = slotFor(argument, analysis_.form(argument));
  for (const Segment& segment : sweep.segments)
    emitSegment(segment, slots);
  return true;
}

void RegionEmitter::emitSegment(const Segment& segment, const llvm::DenseMap<mlir::Value, llvm::AllocaInst*>& slots) {
  const auto forWarps = [&](llvm::function_ref<void()> body) {
    emitSpan(threads_, [&](Value* base, Value* mask) {
      emitLinearWarp(base, mask, [&] {
        for (mlir::Value value : segment.loaded)
          set(value, unpack(kept(slots.lookup(value)), keptForm(value)));
        for (mlir::Operation* op : segment.again)
          emitOp(op);
        body();
      });
    });
  };
  scf::ForOp loop = segment.loop;
  if (!loop) {
    if (!segment.ops.empty())
      forWarps([&] {
        for (mlir::Operation* op : segment.ops) {
          emitOp(op);
          for (mlir::Value result : op->getResults())
            if (llvm::AllocaInst* slot = slots.lookup(result))
              keep(slot, pack(lane(result), keptForm(result)));
        }
      });
    return;
  }
  const auto keepAll = [&](mlir::ValueRange from) {
    for (auto [value, argument] : llvm::zip(packAll(from, loop.getRegionIterArgs()), loop.getRegionIterArgs()))
      keep(slots.lookup(argument), value);
  };
  if (loop.getNumRegionIterArgs() != 0)
    forWarps([&] { keepAll(loop.getInitArgs()); });
  for (mlir::Operation* op : segment.bounds)
    emitOp(op);
  emit::emitFor(ir_, lane(loop.getLowerBound()).value, lane(loop.getUpperBound()).value, lane(loop.getStep()).value,
                [&](Value* iv) {
                  forWarps([&] {
                    set(loop.getInductionVar(), Lane::uniform(iv));
                    for (mlir::Value argument : loop.getRegionIterArgs())
                      set(argument, unpack(kept(slots.lookup(argument)), analysis_.form(argument)));
                    emitBothVersions(*loop.getBody(), [&] { keepAll(loop.getYieldedValues()); });
                  });
                });
}

}  // namespace vortex::target::cpu::emit
