// The kernel's operations keep their order. What stands between two loops or branches of the launch becomes a piece, a kernel of its own with
// copies of those operations; what it needs of other pieces it computes again where that takes no more than scalars and loads, and reads
// from temporaries otherwise, which the other piece writes at its end.
#include "passes/plan/launch_control.h"

#include "ir/root_view.h"
#include "ir/size_attr.h"
#include "ir/tile_sizes.h"
#include "passes/build/phase_builder.h"
#include "passes/pass_on.h"
#include "passes/plan/entry_arguments.h"
#include "passes/plan/launch_places.h"
#include "passes/plan/stored_values.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

namespace {

class Cutter {
public:
  Cutter(ir::EntryOp entry, ir::KernelOp kernel, const TensorSchedule& schedule)
      : arguments_(entry), kernel_(kernel), context_(kernel.getContext()), schedule_(schedule),
        places_(kernel, schedule) {
    kernel.walk([&](Operation* op) {
      if (!isa<ir::TileLoadOp, ir::LoadOp>(op) && op->getNumRegions() == 0 && !isMemoryEffectFree(op))
        for (Value operand : op->getOperands())
          written_.insert(ir::rootView(operand));
    });
  }

  std::vector<ControlStep> run(std::optional<unsigned>& workers) {
    const bool hasProducts = kernel_.walk([](ir::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
    asksForWorkers_ = hasProducts && schedule_.asksForWorkers();
    findControls(kernel_.getBody().front());
    std::vector<ControlStep> steps;
    if (controls_.empty() && stored_.empty()) {
      addPiece(steps, kernel_);
      return steps;
    }
    if (asksForWorkers_ && !workers_)
      workers_ = addArgument(arguments_.addLet("workers"));
    workers = workers_;
    number(kernel_.getBody().front());
    emitBlock(kernel_.getBody().front(), steps, [] {});
    kernel_.erase();
    arguments_.assign();
    return steps;
  }

private:
  //===-- controls and their lets -----------------------------------------------------------------------------===//

  /// The kernel gets what the entry got.
  unsigned addArgument(unsigned number) {
    kernel_.insertArgument(number, arguments_.types()[number], {}, kernel_.getLoc());
    return number;
  }

  /// Outermost first. Lets take the places of the values at once, so that what is inside can name them.
  void findControls(Block& block) {
    for (Operation& op : block.without_terminator()) {
      const bool addsWorkers = asksForWorkers_ && !workers_;
      std::optional<LaunchControl> control = places_.plan(&op, arguments_.nextLet() + addsWorkers);
      if (!control)
        continue;
      if (addsWorkers)
        workers_ = addArgument(arguments_.addLet("workers"));
      if (control->spread) {
        for (Value tile : tilesReadIn(&op))
          computedAgain_[tile] = false;  // its elements are read from memory
        controls_[&op] = std::move(*control);
        continue;
      }
      for (unsigned i = 0; i < control->read.size(); ++i)
        reads_[&op].push_back(addArgument(arguments_.addLet("read")));
      if (control->round)
        addLets(&op, *control);
      if (control->asks) {
        findControls(*cast<scf::WhileOp>(op).getBeforeBody());
        letItSay(&op, *control);
      }
      controls_[&op] = std::move(*control);
      for (Region& region : op.getRegions())
        if (!region.empty() && (isa<scf::IfOp>(op) || &region.front() == LaunchPlaces::bodyOf(&op)))
          findControls(region.front());
    }
    for (Operation* op : findStoredValues(block, [&](Operation* op) { return controls_.contains(op); }))
      stored_.insert(op);
  }

  /// The last round only computes that there is no other.
  void letItSay(Operation* op, LaunchControl& control) {
    reads_[op].push_back(addArgument(arguments_.addLet("goes_on")));
    ir::SizeAttr goesOn = ir::sizeScalar(context_, reads_[op].back());
    auto& [arguments, first, next, condition] = *control.round;
    next[0] = goesOn;
    for (unsigned i = 1; i < next.size(); ++i)
      next[i] = ir::SizeAttr::get(context_, size::make(SizeOp::Select, goesOn.getExpr(), next[i].getExpr(),
                                                       ir::sizeScalar(context_, unsigned(arguments[i])).getExpr()));
  }

  void addLets(Operation* op, const LaunchControl& control) {
    auto let = [&](ValueRange values, std::optional<size::Bounds> bounds = {}) {
      BlockArgument argument = kernel_.getArgument(addArgument(arguments_.addLet("round", bounds)));
      for (Value value : values)
        value.replaceAllUsesWith(argument);
    };
    if (control.asks)
      let({});
    if (auto counted = dyn_cast<scf::ForOp>(op))
      let(counted.getInductionVar(), LaunchPlaces::counterBounds(counted));
    LaunchPlaces::Carried carried = LaunchPlaces::carriedBy(op);
    for (unsigned i : control.lets) {
      SmallVector<Value> same{carried.arguments[i], carried.results[i]};
      if (auto loop = dyn_cast<scf::WhileOp>(op))
        same.push_back(loop.getBeforeArguments()[i]);
      let(same);
    }
  }

  //===-- pieces ----------------------------------------------------------------------------------------------===//

  /// Which piece every operation is going to be in. What control starts with is written by the piece before it.
  void number(Block& block) {
    unsigned piece = pieces_++;
    for (Operation& op : block) {
      pieceOf_[&op] = piece;
      auto control = controls_.find(&op);
      if (control == controls_.end()) {
        piece = stored_.contains(&op) ? pieces_++ : piece;
        continue;
      }
      if (control->second.spread)
        pieceOf_[&op] = pieces_++;
      else
        for (Region& region : op.getRegions())
          if (!region.empty())
            number(region.front());
      piece = pieces_++;
    }
  }

  bool crosses(Value value) const { return leaves(value, pieceOf_.lookup(value.getDefiningOp())); }

  /// Views do not cross: what they are made of does.
  bool leaves(Value value, unsigned home) const {
    return llvm::any_of(value.getUsers(), [&](Operation* user) {
      if (auto view = dyn_cast<ir::SubviewOp>(user); view && leaves(view.getResult(), home))
        return true;
      while (!pieceOf_.contains(user))
        user = user->getParentOp();
      return pieceOf_.lookup(user) != home;
    });
  }

  /// Computed again in every piece that needs it.
  bool isComputedAgain(Value value) {
    Operation* op = value.getDefiningOp();
    if (!op)
      return isa<ir::KernelOp>(value.getParentBlock()->getParentOp());
    auto [known, isNew] = computedAgain_.insert({value, false});
    if (!isNew)
      return known->second;
    const bool isScalar = !isTile(value) && (isa<ir::ElementOp>(op) || llvm::none_of(op->getOperands(), isTile));
    const bool isCheap = isa<ir::TileLoadOp, ir::LoadOp>(op)
                             ? !written_.contains(ir::rootView(op->getOperand(0)))
                             : isPure(op) && op->getNumRegions() == 0 &&
                                   (isScalar || isa<ir::BroadcastOp, ir::IotaOp, arith::ConstantOp>(op));
    const bool again =
        isCheap && llvm::all_of(op->getOperands(), [&](Value operand) { return isComputedAgain(operand); });
    return computedAgain_[value] = again;
  }

  SmallVector<ir::SizeAttr> extentsOf(Value value) {
    SmallVector<ir::SizeAttr> extents;
    if (!isTile(value))
      return {ir::sizeConstant(context_, 1)};
    for (OpFoldResult size : ir::tileSizes(value))
      extents.push_back(sizeExpression(size));
    return extents;
  }

  /// Memory for a value that crosses pieces; nothing: its extents are not known before the launch.
  std::optional<unsigned> addTemporary(Value value) {
    SmallVector<ir::SizeAttr> extents = extentsOf(value);
    if (llvm::is_contained(extents, ir::SizeAttr())) {
      Operation* op = value.getDefiningOp() ? value.getDefiningOp() : value.getParentBlock()->getParentOp();
      op->emitError("the extent of this intermediate tensor is computed in the kernel, so its memory cannot be planned "
                    "before the launch");
      return std::nullopt;
    }
    return addArgument(arguments_.addTemporary(extents, getElementTypeOrSelf(value.getType())));
  }

  void beginPiece(Location loc) {
    OpBuilder builder(kernel_);
    OperationState state(loc, ir::KernelOp::getOperationName());
    state.addAttribute("sym_name", builder.getStringAttr(kernel_.getSymName() + "." + Twine(createdPieces_++)));
    state.addAttribute("function_type", TypeAttr::get(kernel_.getFunctionType()));
    state.addAttribute("whole_tensor", builder.getUnitAttr());
    Block* body = new Block();
    state.addRegion()->push_back(body);
    piece_ = cast<ir::KernelOp>(builder.create(state));
    for (Type type : kernel_.getArgumentTypes())
      body->addArgument(type, loc);
    builder_.setInsertionPointToEnd(body);
    values_.clear();
  }

  /// The piece's argument of that number; temporaries may have come since it began.
  Value argument(unsigned number) {
    while (piece_.getNumArguments() <= number) {
      const unsigned next = piece_.getNumArguments();
      piece_.insertArgument(next, kernel_.getArgumentTypes()[next], {}, piece_.getLoc());
    }
    return piece_.getArgument(number);
  }

  Value get(Value value) {
    if (Value known = values_.lookupOrNull(value))
      return known;
    Value made;
    auto argumentOf = dyn_cast<BlockArgument>(value);
    if (argumentOf && argumentOf.getOwner()->getParentOp() == kernel_)
      made = argument(argumentOf.getArgNumber());
    else if (auto home = homes_.find(value); home != homes_.end())
      made = load(value, home->second);
    else
      made = clone(value.getDefiningOp())->getResult(cast<OpResult>(value).getResultNumber());
    values_.map(value, made);
    return made;
  }

  Operation* clone(Operation* op) {
    Clusters::forEachOperand(op, [&](Value value) { get(value); });
    return builder_.clone(*op, values_);
  }

  Value load(Value value, unsigned number) {
    Location loc = value.getLoc();
    Value view = argument(number), zero = builder_.create<arith::ConstantIndexOp>(loc, 0);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return builder_.create<ir::LoadOp>(loc, value.getType(), view, ValueRange{zero}, Value(), false);
    SmallVector<Value> sizes, offsets(static_cast<size_t>(type.getRank()), zero);
    for (auto [dim, extent] : llvm::enumerate(extentsOf(value)))
      if (type.isDynamicDim(static_cast<unsigned>(dim)))
        sizes.push_back(emitSize(builder_, loc, extent, piece_.getBody().getArguments()));
    return builder_.create<ir::TileLoadOp>(loc, type, view, offsets, sizes, Value(), true);
  }

  void store(Value value, unsigned number) {
    Location loc = value.getLoc();
    Value made = get(value), view = argument(number), zero = builder_.create<arith::ConstantIndexOp>(loc, 0);
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      builder_.create<ir::TileStoreOp>(loc, made, view, SmallVector<Value>(static_cast<size_t>(type.getRank()), zero),
                                       true);
    else
      builder_.create<ir::StoreOp>(loc, made, view, ValueRange{zero}, Value(), false);
  }

  /// At the end of a piece: the launch is to know a condition or bound.
  unsigned storeForLaunch(Value value) {
    Location loc = value.getLoc();
    auto wide = IntegerType::get(context_, 64);
    const unsigned number = addArgument(arguments_.addTemporary({ir::sizeConstant(context_, 1)}, wide));
    Value made = get(value);
    if (made.getType().isIndex())
      made = builder_.create<arith::IndexCastOp>(loc, wide, made);
    else
      made = builder_.create<arith::ExtUIOp>(loc, wide, made);
    Value zero = builder_.create<arith::ConstantIndexOp>(loc, 0);
    builder_.create<ir::StoreOp>(loc, made, argument(number), ValueRange{zero}, Value(), false);
    return number;
  }

  void addRead(std::vector<ControlStep>& steps, unsigned let, unsigned temporary) {
    steps.emplace_back();
    steps.back().read = {let, temporary};
  }

  /// Ends the piece before a loop or branch with what the launch reads of it.
  void endPieceBefore(Operation* op, std::vector<ControlStep>& steps) {
    SmallVector<unsigned> temporaries;
    for (Value value : controls_[op].read)
      temporaries.push_back(storeForLaunch(value));
    endPiece(steps);
    for (auto [let, temporary] : llvm::zip(ArrayRef(reads_[op]).take_front(temporaries.size()), temporaries))
      addRead(steps, let, temporary);
  }

  void addPiece(std::vector<ControlStep>& steps, ir::KernelOp piece) {
    steps.emplace_back();
    steps.back().piece = piece;
  }

  void endPiece(std::vector<ControlStep>& steps) {
    builder_.create<ir::ReturnOp>(piece_.getLoc());
    const bool acts = piece_
                          .walk([](Operation* op) {
                            const bool isQuiet = isa<ir::TileLoadOp, ir::LoadOp, ir::ReturnOp>(op) ||
                                                 op->getNumRegions() != 0 || isMemoryEffectFree(op);
                            return isQuiet ? WalkResult::advance() : WalkResult::interrupt();
                          })
                          .wasInterrupted();
    if (acts)
      addPiece(steps, piece_);
    else
      piece_.erase();
  }

  /// `finish` writes what leaves the block, at the end of its last piece.
  void emitBlock(Block& block, std::vector<ControlStep>& steps, llvm::function_ref<void()> finish) {
    beginPiece(block.getParentOp()->getLoc());
    for (Operation& op : block.without_terminator()) {
      if (controls_.contains(&op)) {
        emitControl(&op, steps);
        beginPiece(op.getLoc());
        continue;
      }
      if (op.getNumResults() != 0 &&
          llvm::all_of(op.getResults(), [&](Value result) { return isComputedAgain(result); }))
        continue;  // where it is needed
      Operation* made = clone(&op);
      for (auto [from, to] : llvm::zip(op.getResults(), made->getResults())) {
        values_.map(from, to);
        if (isa<ir::ViewType>(from.getType()) || !crosses(from))
          continue;
        std::optional<unsigned> home = addTemporary(from);
        failed |= !home;
        if (!home)
          continue;
        store(from, *home);
        homes_[from] = *home;
      }
      if (stored_.contains(&op)) {
        endPiece(steps);
        beginPiece(op.getLoc());
      }
    }
    finish();
    endPiece(steps);
  }

  void emitControl(Operation* op, std::vector<ControlStep>& steps) {
    if (controls_[op].spread) {
      endPiece(steps);
      return emitSpread(op, steps);
    }
    ControlStep step;
    step.origin = op->getLoc();
    if (auto branch = dyn_cast<scf::IfOp>(op))
      emitBranch(branch, step, steps);
    else
      emitLoop(op, step, steps);
    steps.push_back(std::move(step));
  }

  void emitSpread(Operation* op, std::vector<ControlStep>& steps) {
    const SpreadLoops spread = *controls_[op].spread;
    beginPiece(op->getLoc());
    Clusters::forEachOperand(op, [&](Value value) {
      if (!isTile(value))
        get(value);
    });
    for (scf::ForOp loop : spread.loops)
      for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
        get(bound);
    emitSpreadLoops(builder_, spread, values_, [&](Value tile) { return argument(homes_.lookup(tile)); });
    builder_.create<ir::ReturnOp>(op->getLoc());
    piece_.setWholeTensor(false);
    auto [grid, block] = gridOf(spread);
    piece_.setGridAttr(grid);
    piece_.setBlockAttr(block);
    addPiece(steps, piece_);
  }

  void emitBranch(scf::IfOp op, ControlStep& step, std::vector<ControlStep>& before) {
    endPieceBefore(op, before);
    step.condition = controls_[op].condition;
    SmallVector<std::optional<unsigned>> homes;
    for (Value result : op.getResults()) {
      homes.push_back(addTemporary(result));
      failed |= !homes.back();
    }
    if (failed)
      return;
    auto side = [&](Block* block, std::vector<ControlStep>& into) {
      emitBlock(*block, into, [&] {
        for (auto [yield, home] : llvm::zip(block->getTerminator()->getOperands(), homes))
          store(yield, *home);
      });
    };
    side(op.thenBlock(), step.steps);
    if (op.elseBlock())
      side(op.elseBlock(), step.otherwise);
    for (auto [result, home] : llvm::zip(op.getResults(), homes))
      homes_[result] = *home;
  }

  void emitLoop(Operation* op, ControlStep& step, std::vector<ControlStep>& before) {
    const LaunchControl control = controls_[op];
    step.round = control.round;
    LaunchPlaces::Carried carried = LaunchPlaces::carriedBy(op);
    struct Buffers {
      unsigned index, current, next;
    };
    SmallVector<Buffers> buffers;
    for (unsigned i = 0; i < carried.initial.size(); ++i) {
      if (llvm::is_contained(control.lets, i))
        continue;
      std::optional<unsigned> current = addTemporary(carried.results[i]), next = current;
      if (carried.yields[i] != carried.arguments[i] && current)
        next = addTemporary(carried.results[i]);
      failed |= !current || !next;
      if (failed)
        return;
      buffers.push_back({i, *current, *next});
      store(carried.initial[i], *current);
    }
    endPieceBefore(op, before);
    for (const Buffers& buffer : buffers)
      homes_[carried.arguments[buffer.index]] = homes_[carried.results[buffer.index]] = buffer.current;
    ControlStep* round = &step;
    ControlStep rest;
    if (control.asks) {
      for (const Buffers& buffer : buffers)
        homes_[cast<scf::WhileOp>(op).getBeforeArguments()[buffer.index]] = buffer.current;
      emitQuestion(cast<scf::WhileOp>(op), step.steps);
      rest.origin = op->getLoc();
      rest.condition = ir::sizeScalar(context_, reads_[op].back());
      round = &rest;
    }
    emitBlock(*LaunchPlaces::bodyOf(op), round->steps, [&] {
      for (const Buffers& buffer : buffers)
        if (buffer.current != buffer.next)
          store(carried.yields[buffer.index], buffer.next);
    });
    for (const Buffers& buffer : buffers)
      if (buffer.current != buffer.next)
        round->exchanges.push_back({buffer.current, buffer.next});
    if (control.asks)
      step.steps.push_back(std::move(rest));
  }

  /// The first steps of a round, which say whether there are others.
  void emitQuestion(scf::WhileOp op, std::vector<ControlStep>& steps) {
    unsigned answer = 0;
    emitBlock(*op.getBeforeBody(), steps, [&] { answer = storeForLaunch(op.getConditionOp().getCondition()); });
    addRead(steps, reads_[op].back(), answer);
  }

public:
  bool failed = false;

private:
  EntryArguments arguments_;
  ir::KernelOp kernel_;
  MLIRContext* context_;
  const TensorSchedule& schedule_;
  LaunchPlaces places_;
  llvm::DenseSet<Value> written_;  ///< views that the kernel writes
  bool asksForWorkers_ = false;
  std::optional<unsigned> workers_;
  llvm::DenseMap<Operation*, LaunchControl> controls_;
  llvm::DenseMap<Operation*, SmallVector<unsigned>>
      reads_;                          ///< lets of LaunchControl::read; last: whether the loop goes on
  llvm::DenseSet<Operation*> stored_;  ///< behind which a piece ends
  llvm::DenseMap<Operation*, unsigned> pieceOf_;
  unsigned pieces_ = 0, createdPieces_ = 0;
  llvm::DenseMap<Value, bool> computedAgain_;
  llvm::DenseMap<Value, unsigned> homes_;  ///< temporaries of values that cross pieces
  ir::KernelOp piece_;                     ///< being written
  OpBuilder builder_{context_};
  IRMapping values_;  ///< of the kernel, in the piece
};

}  // namespace

FailureOr<std::vector<ControlStep>> cutAtControl(ir::EntryOp entry, ir::KernelOp kernel, const TensorSchedule& schedule,
                                                 std::optional<unsigned>& workers) {
  passOnWhatIsCarried(kernel);
  Cutter cutter(entry, kernel, schedule);
  std::vector<ControlStep> steps = cutter.run(workers);
  if (cutter.failed)
    return failure();
  return steps;
}

}  // namespace vortex::passes
