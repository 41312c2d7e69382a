#include "passes/plan/launch_places.h"

#include "analysis/element_control.h"
#include "ir/root_view.h"
#include "ir/tile_sizes.h"
#include "passes/plan/clusters.h"
#include "passes/plan/stored_values.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

Block* LaunchPlaces::bodyOf(Operation* loop) {
  if (auto counted = dyn_cast<scf::ForOp>(loop))
    return counted.getBody();
  return cast<scf::WhileOp>(loop).getAfterBody();
}

LaunchPlaces::Carried LaunchPlaces::carriedBy(Operation* op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return {loop.getInitArgs(), loop.getRegionIterArgs(), loop.getYieldedValues(), loop.getResults()};
  auto loop = cast<scf::WhileOp>(op);
  return {loop.getInits(), loop.getAfterArguments(), loop.getYieldOp().getOperands(), loop.getResults()};
}

/// Blocks have room for their pieces of the tile: some axis is left that nothing needs whole. GPUs have so much room and no more.
bool LaunchPlaces::fitsBlock(Value tile, const AxisSet& whole) const {
  constexpr int64_t kMostBytes = 32768;
  const SmallVector<Axis> axes = axes_.of(tile);
  bool isSplit = false, isBounded = true;
  int64_t bytes = 8, elements = 1;
  for (auto [dim, axis] : llvm::enumerate(axes)) {
    const ir::SizeAttr extent = axes_.extent(axis);
    const std::optional<int64_t> known = extent ? ir::constantSize(extent) : std::nullopt;
    const bool mayBeSplit = extent && !whole.contains(axis);
    isSplit |= mayBeSplit;
    isBounded &= known || (mayBeSplit && dim + 1 != axes.size());
    elements *= std::min<int64_t>(known.value_or(1), kMostBytes);
    if (!mayBeSplit || dim + 1 == axes.size())
      bytes *= std::min<int64_t>(known.value_or(1), kMostBytes);
    bytes = std::min(bytes, 2 * kMostBytes), elements = std::min(elements, 2 * kMostBytes);
  }
  const bool isSmall = isBounded && !isSplit && elements * 8 <= kMostBytes;
  return isSmall || (isSplit && (!schedule_.fusedOnly || (isBounded && bytes <= kMostBytes)));
}

/// Blocks can carry their pieces of the tiles.
bool LaunchPlaces::fitsBlock(Operation* op) const {
  const AxisSet whole = axes_.wholeAxes(op);
  return llvm::all_of(op->getResults(), [&](Value result) { return !isTile(result) || fitsBlock(result, whole); });
}

std::optional<size::Bounds> LaunchPlaces::counterBounds(scf::ForOp loop, SizeLeaf leaf) {
  ir::SizeAttr lower = wideExpression(loop.getLowerBound(), leaf), upper = wideExpression(loop.getUpperBound(), leaf);
  if (!lower || !upper || !loop.getInductionVar().getType().isIndex())
    return std::nullopt;
  return size::Bounds{lower.getExpr(), size::make(SizeOp::Sub, upper.getExpr(), 1)};
}

/// Counters of a loop and of those inside it, before any is a let.
class Counters {
public:
  explicit Counters(Operation* op) {
    op->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      if (std::optional<size::Bounds> bounds = LaunchPlaces::counterBounds(loop, leaf)) {
        numbers_[loop.getInductionVar()] = kFirst + static_cast<unsigned>(bounds_.size());
        bounds_.push_back(*bounds);
      }
    });
  }

  /// An expression that is bounded over all rounds.
  bool bound(Value value) const {
    ir::SizeAttr expression = sizeExpression(value, leaf);
    return expression && size::boundsOf(expression.getExpr(), [&](uint32_t number) {
             return number < kFirst ? std::nullopt : std::optional(bounds_[number - kFirst]);
           });
  }

private:
  static constexpr uint32_t kFirst = 1u << 30;  // no argument has that number
  std::function<ir::SizeAttr(Value)> leaf = [this](Value value) -> ir::SizeAttr {
    auto number = numbers_.find(value);
    return number == numbers_.end() ? nullptr : ir::sizeScalar(value.getContext(), number->second);
  };
  llvm::DenseMap<Value, unsigned> numbers_;
  std::vector<size::Bounds> bounds_;
};

/// The extents of all tiles inside, and of those that become temporaries, are the same in every round. Where rounds cannot do without the
/// launch, as on GPUs, they may follow from its counters: temporaries have room for the largest.
bool LaunchPlaces::hasKnownExtents(Operation* op) const {
  auto isOuter = [&](Value value) { return !op->isAncestor(value.getParentRegion()->getParentOp()); };
  auto isSame = [&](auto& self, Value size) -> bool {
    if (isOuter(size))
      return true;
    Operation* producer = size.getDefiningOp();
    return producer && producer->getNumRegions() == 0 && !isa<ir::LoadOp, ir::ElementOp>(producer) &&
           llvm::all_of(producer->getOperands(), [&](Value operand) { return self(self, operand); });
  };
  const Counters counters(op);
  bool isKnown = true;
  op->walk([&](Operation* inner) {
    for (Value result : inner->getResults())
      if (isTile(result))
        for (OpFoldResult size : ir::tileSizes(result))
          if (auto value = dyn_cast_if_present<Value>(size))
            isKnown &= isSame(isSame, value) || (schedule_.fusedOnly && counters.bound(value));
  });
  for (Value result : op->getResults())
    if (isTile(result))
      for (OpFoldResult size : ir::tileSizes(result))
        isKnown &= bool(sizeExpression(size));
  return isKnown;
}

/// Numbers of lets from `firstLet` on: what is read, whether the loop goes on, the counter, carried values.
class RoundPlan {
public:
  RoundPlan(Operation* op, LaunchControl& control, unsigned firstLet)
      : context_(op->getContext()), counted_(dyn_cast<scf::ForOp>(op)), while_(dyn_cast<scf::WhileOp>(op)),
        carried_(LaunchPlaces::carriedBy(op)), control_(control), next_(firstLet) {}

  /// False: some of `control.lets` cannot be computed by the launch; those that can are left.
  bool make() {
    for (Value value : control_.read)
      let({value});
    if (control_.asks)
      addRound(let({}), ir::sizeConstant(context_, 1), nullptr);
    if (counted_)
      addCounter();
    SmallVector<unsigned> numbers;
    for (unsigned i : control_.lets) {
      SmallVector<Value> same{carried_.arguments[i]};
      if (while_)
        same.push_back(while_.getBeforeArguments()[i]);
      numbers.push_back(let(same));
    }
    round_.condition = control_.asks ? ir::sizeScalar(context_, unsigned(round_.arguments[0]))
                       : while_      ? conditionExpression(while_.getConditionOp().getCondition(), leaf_)
                                     : round_.condition;
    SmallVector<unsigned> computed;
    for (auto [i, number] : llvm::zip(control_.lets, numbers))
      if (ir::SizeAttr value = wideExpression(carried_.yields[i], leaf_)) {
        computed.push_back(i);
        addRound(number, wideExpression(carried_.initial[i], leaf_), value);
      }
    const bool isWhole = computed.size() == control_.lets.size();
    control_.lets = std::move(computed);
    control_.round = std::move(round_);
    return isWhole;
  }

private:
  unsigned let(ValueRange values) {
    for (Value value : values)
      known_[value] = ir::sizeScalar(context_, next_);
    return next_++;
  }

  void addRound(unsigned argument, ir::SizeAttr first, ir::SizeAttr next) {
    round_.arguments.push_back(argument);
    round_.first.push_back(first);
    round_.next.push_back(next);
  }

  void addCounter() {
    const unsigned number = let({counted_.getInductionVar()});
    ir::SizeAttr counter = ir::sizeScalar(context_, number);
    ir::SizeAttr step = wideExpression(counted_.getStep(), leaf_),
                 upper = wideExpression(counted_.getUpperBound(), leaf_),
                 next = ir::sizeBinary(SizeOp::Add, counter, step);
    if (step.getExpr().constant() != 1) {  // one cannot lead past the largest number, others end the loop there
      ir::SizeAttr last = ir::sizeBinary(SizeOp::Sub, ir::sizeConstant(context_, INT64_MAX), step);
      next =
          ir::SizeAttr::get(context_, size::make(SizeOp::Select, ir::sizeBinary(SizeOp::Less, last, counter).getExpr(),
                                                 upper.getExpr(), next.getExpr()));
    }
    addRound(number, wideExpression(counted_.getLowerBound(), leaf_), next);
    round_.condition = ir::sizeBinary(SizeOp::Less, counter, upper);
  }

  MLIRContext* context_;
  scf::ForOp counted_;
  scf::WhileOp while_;
  LaunchPlaces::Carried carried_;
  LaunchControl& control_;
  unsigned next_;
  llvm::DenseMap<Value, ir::SizeAttr> known_;
  std::function<ir::SizeAttr(Value)> leaf_ = [this](Value value) { return known_.lookup(value); };
  ir::LaunchBuilder::Round round_;
};

/// What is passed on is what it got.
static bool passesOn(scf::WhileOp loop) {
  return llvm::equal(loop.getConditionOp().getArgs(), loop.getBeforeArguments());
}

/// Its condition is made of what is passed on, and nothing else happens there.
static bool isPlainWhile(scf::WhileOp loop) {
  return llvm::all_of(loop.getBeforeBody()->without_terminator(), [](Operation& op) {
    return op.getNumRegions() == 0 && isPure(&op) && llvm::none_of(op.getOperands(), isTile);
  });
}

std::optional<LaunchControl> LaunchPlaces::planLoop(Operation* op, unsigned firstLet) const {
  auto counted = dyn_cast<scf::ForOp>(op);
  if (counted ? !counted.getInductionVar().getType().isIndex() : !passesOn(cast<scf::WhileOp>(op))) {
    op->setAttr(kStaysAttribute,
                StringAttr::get(op->getContext(), counted ? "the launch counts in 64 bits, and the counter is narrower"
                                                          : "what leaves the loop is computed by its condition"));
    return std::nullopt;
  }
  LaunchControl control;
  if (counted)
    for (Value bound : {counted.getLowerBound(), counted.getUpperBound(), counted.getStep()})
      if (!wideExpression(bound) && !llvm::is_contained(control.read, bound))
        control.read.push_back(bound);
  for (auto [i, initial] : llvm::enumerate(carriedBy(op).initial))
    if (initial.getType().isIndex() && wideExpression(initial))
      control.lets.push_back(static_cast<unsigned>(i));
  control.asks = !counted && !isPlainWhile(cast<scf::WhileOp>(op));
  while (!RoundPlan(op, control, firstLet).make() || !control.round->condition)
    control.asks |= !control.round->condition;
  return control;
}

/// Tiles that cross from before the loop become temporaries, whose extents have to be known.
std::optional<LaunchControl> LaunchPlaces::planSpread(Operation* op) const {
  LaunchControl control;
  control.spread = findSpreadLoops(op, [](Value value) { return wideExpression(value); });
  if (!control.spread)
    return std::nullopt;
  const auto crosses = [&](Value tile) {
    return llvm::any_of(tile.getUsers(), [&](Operation* user) {
      Operation* ancestor = op->getBlock()->findAncestorOpInBlock(*user);
      return ancestor && !ancestor->isBeforeInBlock(op);
    });
  };
  SmallVector<Value> tiles = tilesReadIn(op);
  for (Operation& before : llvm::make_range(op->getBlock()->begin(), op->getIterator()))
    llvm::copy_if(before.getResults(), std::back_inserter(tiles),
                  [&](Value value) { return isTile(value) && crosses(value); });
  for (Value tile : tiles)
    for (OpFoldResult size : ir::tileSizes(tile))
      if (!sizeExpression(size))
        return std::nullopt;
  return control;
}

/// A launch for each round costs more than a few iterations in one thread: loops around them are cut where the program asks for it.
bool LaunchPlaces::isAroundSpreadLoops(Operation* op) const {
  auto branch = dyn_cast<scf::IfOp>(op);
  const bool isFree = branch && conditionExpression(branch.getCondition());
  const bool holdsLoop = isFree && llvm::any_of(op->getRegions(), [&](Region& region) {
                           return !region.empty() && llvm::any_of(region.front(), [&](Operation& inner) {
                             return bool(planSpread(&inner));
                           });
                         });
  return holdsLoop || holdsClaimedLoop(op);
}

/// Columns of what `op` also writes: its block keeps them until all are added up.
static Value keptColumns(ir::ReduceOp reduce, Operation* op) {
  const int64_t rank = cast<RankedTensorType>(reduce.getValue().getType()).getRank();
  if (llvm::is_contained(reduce.getDims(), rank - 1))
    return {};
  llvm::DenseSet<Value> written, seen;
  op->walk([&](ir::TileStoreOp store) { written.insert(ir::rootView(store.getView())); });
  SmallVector<Value> pending{reduce.getValue()};
  while (!pending.empty()) {
    Operation* source = pending.pop_back_val().getDefiningOp();
    if (!source || !op->isProperAncestor(source))
      continue;
    if (auto load = dyn_cast<ir::TileLoadOp>(source)) {
      if (written.contains(ir::rootView(load.getView())))
        return load.getResult();
    } else if (source->getNumRegions() == 0) {
      llvm::copy_if(source->getOperands(), std::back_inserter(pending),
                    [&](Value operand) { return isTile(operand) && seen.insert(operand).second; });
    }
  }
  return {};
}

/// Inside stands what blocks have no room for, a product, a scan, columns of what is written, or control flow around tiles: the launch can run
/// that only if it runs this too.
bool LaunchPlaces::holdsWhatDoesNotFit(Operation* op) const {
  if (!schedule_.fusedOnly)
    return false;
  const AxisSet whole = axes_.wholeAxes(op);
  auto fits = [&](Operation* inner) {
    if (isa<ir::DotOp, ir::ScanOp>(inner))
      return fitsBlock(inner->getResult(0), whole);
    if (auto reduce = dyn_cast<ir::ReduceOp>(inner)) {
      Value kept = keptColumns(reduce, op);
      return !kept || fitsBlock(kept, whole);
    }
    const bool isInside = inner != op && isa<scf::ForOp, scf::WhileOp, scf::IfOp>(inner);
    return !isInside || llvm::none_of(inner->getResults(), isTile) || analysis::isElementControl(inner) ||
           fitsBlock(inner);
  };
  return op->walk([&](Operation* inner) { return fits(inner) ? WalkResult::advance() : WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Blocks would compute some of it so often that pieces of the launch have to pass it on.
bool LaunchPlaces::holdsStoredValues(Operation* op) {
  return op
      ->walk([](Block* block) {
        const bool holds = !findStoredValues(*block, [](Operation*) { return false; }).empty();
        return holds ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

std::optional<LaunchControl> LaunchPlaces::plan(Operation* op, unsigned firstLet) const {
  if (!isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op))
    return std::nullopt;
  if (std::optional<LaunchControl> spread = planSpread(op))
    return spread;
  const bool staysInPiece = llvm::none_of(op->getResults(), isTile) || analysis::isElementControl(op) || fitsBlock(op);
  if (staysInPiece && !readsWhatOthersWrite(op, axes_) && !isAroundSpreadLoops(op) && !holdsWhatDoesNotFit(op) &&
      !holdsStoredValues(op))
    return std::nullopt;
  op->setAttr(kStaysAttribute, StringAttr::get(op->getContext(), "the launch cannot run it, as extents inside follow "
                                                                 "from what it computes"));
  if (!hasKnownExtents(op))
    return std::nullopt;
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch)
    return planLoop(op, firstLet);
  LaunchControl control;
  control.condition = conditionExpression(branch.getCondition());
  if (!control.condition) {
    control.read.push_back(branch.getCondition());
    control.condition = ir::sizeScalar(op->getContext(), firstLet);
  }
  return control;
}

}  // namespace vortex::passes
