#include "target/gpu/hopper/expand_roles.h"

#include "base/check.h"
#include "ir/index_cast.h"
#include "layout/hopper.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/IR/IRMapping.h>
#include <mlir/Pass/PassManager.h>

namespace vortex::target::gpu::hopper {

namespace {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
namespace vxnv = ir::vxnv;
namespace vxt = ir::vxt;
using mlir::Value;
using Values = llvm::SmallVector<Value>;

/// Where a role stands in a ring.
struct Position {
  Value slot, parity;  ///< the next one (i32)
  Value oldest;        ///< consumers: the slot that is released next
  int64_t bytes = 0;   ///< producer: of the copies into the slot it holds
};

class Expander {
public:
  explicit Expander(vxnv::RolesOp roles) : roles_(roles), b_(roles), loc_(roles.getLoc()) {}

  void run() {
    for (auto ring : roles_->getBlock()->getOps<vxnv::RingOp>())
      rings_.push_back(ring);
    auto i32 = b_.getI32Type();
    Value thread = b_.create<vxt::ThreadIdOp>(loc_, i32);
    Value isFirst = equal(thread, constant(0));
    Value lane = b_.create<arith::AndIOp>(loc_, thread, constant(vxt::kWarpThreads - 1));
    isLeader_ = equal(lane, constant(0));
    // One value per warp, for the assembler to see: wgmma and setmaxnreg stand behind uniform branches.
    Value group = b_.create<arith::ShRUIOp>(loc_, thread, constant(llvm::Log2_64(vxnv::kGroupThreads)));
    group = b_.create<vxt::ShuffleOp>(loc_, ir::ShuffleKind::Index, group, constant(0), Value());
    when(isFirst, [&] { initialize(); });
    b_.create<vxt::BarrierOp>(loc_);
    auto branch = b_.create<scf::IfOp>(loc_, equal(group, constant(0)), true);
    b_.setInsertionPointToStart(branch.thenBlock());
    b_.create<vxnv::SetRegistersOp>(loc_, roles_.getRegisters()[0], false);
    when(isFirst, [&] { expandRole(roles_.getProducer().front(), 1); });
    b_.setInsertionPointToStart(branch.elseBlock());
    b_.create<vxnv::SetRegistersOp>(loc_, roles_.getRegisters()[1], true);
    Value number = b_.create<arith::SubIOp>(loc_, group, constant(1));
    map_.map(roles_.getConsumer().getArgument(0), b_.create<arith::IndexCastUIOp>(loc_, b_.getIndexType(), number));
    prepareTurns(number);
    expandRole(roles_.getConsumer().front(), 0);
    roles_.erase();
    for (vxnv::RingOp ring : rings_)
      ring.erase();
  }

private:
  Value constant(int64_t value) { return b_.create<arith::ConstantIntOp>(loc_, value, 32); }
  Value equal(Value a, Value b) { return b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::eq, a, b); }
  Value add(Value a, Value b) { return b_.create<arith::AddIOp>(loc_, a, b); }
  Value narrow(Value index) { return ir::fromIndex(b_, loc_, b_.getI32Type(), index); }

  void when(Value condition, llvm::function_ref<void()> body) {
    auto branch = b_.create<scf::IfOp>(loc_, condition, false);
    mlir::OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(branch.thenBlock());
    body();
  }

  Value shared(int64_t offset) {
    return b_.create<vxt::SharedOp>(loc_, vxt::PtrType::get(b_.getContext(), ir::Space::Shared), offset);
  }
  Value move(Value pointer, Value bytes) {
    return b_.create<vxt::OffsetOp>(loc_, pointer.getType(), pointer, bytes, b_.getI8Type());
  }
  Value slotPointer(vxnv::RingOp ring, Value slot) {
    return move(shared(ring.getOffset()), b_.create<arith::MulIOp>(loc_, slot, constant(ring.getBytes())));
  }
  /// Barriers that say full lie first, then those that say empty.
  Value barrier(vxnv::RingOp ring, Value slot, bool isEmpty) {
    constexpr int64_t kBytes = 8;
    Value base = shared(ring.getBarriers() + (isEmpty ? kBytes * ring.getStages() : 0));
    return move(base, b_.create<arith::MulIOp>(loc_, slot, constant(kBytes)));
  }

  /// Whether a slot is taken twice; else nobody waits for empty ones.
  bool isRefilled(vxnv::RingOp ring) {
    uint64_t taken = 0;
    for (mlir::Operation* user : ring->getUsers())
      if (llvm::isa<vxnv::AcquireOp>(user))
        taken += user->getParentRegion() == &roles_.getProducer() ? 1 : ring.getStages() + 1;
    return taken > ring.getStages();
  }

  void initialize() {
    auto kernel = roles_->getParentOfType<vxt::KernelOp>();
    if (auto maps = kernel->getAttrOfType<mlir::ArrayAttr>(vxnv::kMaps))
      for (unsigned map = 0; map < maps.size(); ++map)
        b_.create<vxnv::PrefetchMapOp>(loc_, map);
    int64_t releases = static_cast<int64_t>(roles_.getConsumers()) * vxnv::kGroupWarps;
    for (vxnv::RingOp ring : rings_)
      for (unsigned slot = 0; slot < ring.getStages(); ++slot) {
        b_.create<vxnv::BarrierInitOp>(loc_, barrier(ring, constant(slot), false), 1);
        if (isRefilled(ring))
          b_.create<vxnv::BarrierInitOp>(loc_, barrier(ring, constant(slot), true), releases);
      }
    b_.create<vxnv::BarrierInitFenceOp>(loc_);
  }

  /// A barrier per consumer, for its threads and those of the one before it, who end their turn there.
  void prepareTurns(Value number) {
    if (roles_.getConsumer().walk([](vxnv::TurnBeginOp) { return mlir::WalkResult::interrupt(); }).wasInterrupted()) {
      auto consumers = static_cast<int64_t>(roles_.getConsumers());
      Value isLast = equal(number, constant(consumers - 1));
      turn_ = add(number, constant(1));
      next_ = b_.create<arith::SelectOp>(loc_, isLast, constant(1), add(number, constant(2)));
      // Before the first one's first turn.
      when(isLast, [&] { b_.create<vxnv::NamedBarrierOp>(loc_, next_, 2 * vxnv::kGroupThreads, true); });
    }
  }

  /// `parity`: of the phase before the first wait of the role; that before the first of a barrier is 1.
  void expandRole(mlir::Block& body, int64_t parity) {
    for (vxnv::RingOp ring : rings_)
      positions_[ring.getResult()] = {constant(0), constant(parity), constant(0)};
    expandBlock(body);
  }

  void expandBlock(mlir::Block& body) {
    for (mlir::Operation& op : body)
      if (!op.hasTrait<mlir::OpTrait::IsTerminator>())
        expand(&op);
  }

  void expand(mlir::Operation* op) {
    loc_ = op->getLoc();
    llvm::TypeSwitch<mlir::Operation*>(op)
        .Case([&](scf::ForOp loop) { expandFor(loop); })
        .Case([&](vxnv::TilesOp tiles) { expandTiles(tiles); })
        .Case([&](vxnv::AcquireOp acquire) { take(acquire.getRing(), acquire.getSlot(), true); })
        .Case([&](vxnv::AwaitOp await) { take(await.getRing(), await.getSlot(), false); })
        .Case([&](vxnv::CopyOp copy) { expandCopy(copy); })
        .Case([&](vxnv::PublishOp publish) { expandPublish(publish); })
        .Case([&](vxnv::ReleaseOp release) { expandRelease(release); })
        .Case([&](vxnv::SumsOp sums) { expandSums(sums); })
        .Case([&](vxnv::DotStartOp dot) { expandStart(dot); })
        .Case([&](vxnv::DotStartRegistersOp dot) { expandStart(dot); })
        .Case([&](vxnv::SumsOfOp made) {
          isFenced_ = false;
          sums_[made.getResult()] = lookup(made.getValues());
        })
        .Case([&](vxnv::TurnBeginOp) { b_.create<vxnv::NamedBarrierOp>(loc_, turn_, 2 * vxnv::kGroupThreads, false); })
        .Case([&](vxnv::TurnEndOp) { b_.create<vxnv::NamedBarrierOp>(loc_, next_, 2 * vxnv::kGroupThreads, true); })
        .Case([&](vxnv::DotWaitOp wait) {
          isFenced_ = false;
          Values sums = sums_.lookup(wait.getSums());
          auto waited = b_.create<vxnv::WgmmaWaitOp>(loc_, mlir::ValueRange(sums).getTypes(), sums, wait.getPending());
          sums_[wait.getResult()] = Values(waited.getResults());
        })
        .Case([&](vxnv::SumOp sum) { map_.map(sum.getResult(), sums_.lookup(sum.getSums())[sum.getNumber()]); })
        .Case([&](vxnv::StoreOp store) { expandStore(store); })
        .Case([&](vxnv::StoreWaitOp wait) {
          when(isLeader_, [&] { b_.create<vxnv::BulkWaitOp>(loc_, wait.getPending(), wait.getWritten()); });
          if (!wait.getWritten())
            b_.create<vxt::WarpBarrierOp>(loc_, Value());
        })
        .Default([&](mlir::Operation*) { b_.clone(*op, map_); });
  }

  //===-- rings -------------------------------------------------------------------------------------------------===//

  Value next(Value slot, vxnv::RingOp ring, Value* wraps) {
    Value following = add(slot, constant(1));
    *wraps = equal(following, constant(ring.getStages()));
    return b_.create<arith::SelectOp>(loc_, *wraps, constant(0), following);
  }

  /// A producer waits for the slot to be empty, a consumer for it to be full.
  void take(Value ringValue, Value slot, bool isProducer) {
    auto ring = ringValue.getDefiningOp<vxnv::RingOp>();
    Position& at = positions_[ringValue];
    if (!isProducer || isRefilled(ring))
      b_.create<vxnv::BarrierWaitOp>(loc_, barrier(ring, at.slot, isProducer), at.parity);
    slots_[slot] = {slotPointer(ring, at.slot), barrier(ring, at.slot, false)};
    Value wraps;
    if (isProducer)
      at.oldest = at.slot;
    at.slot = next(at.slot, ring, &wraps);
    at.parity = b_.create<arith::XOrIOp>(loc_, at.parity, b_.create<arith::ExtUIOp>(loc_, b_.getI32Type(), wraps));
    at.bytes = 0;
  }

  void expandCopy(vxnv::CopyOp copy) {
    auto [pointer, full] = slots_.lookup(copy.getSlot());
    Values coordinates;
    for (Value coordinate : copy.getCoordinates())
      coordinates.push_back(narrow(map_.lookupOrDefault(coordinate)));
    b_.create<vxnv::BulkLoadOp>(loc_, move(pointer, constant(copy.getOffset())), full, copy.getMap(), coordinates);
    auto acquire = copy.getSlot().getDefiningOp<vxnv::AcquireOp>();
    positions_[acquire.getRing()].bytes += vxnv::findMap(copy, copy.getMap()).boxBytes();
  }

  /// Bytes that arrive before they are announced do not end the phase: the arrival that announces them is one it waits for.
  void expandPublish(vxnv::PublishOp publish) {
    Position& at = positions_[publish.getRing()];
    auto ring = publish.getRing().getDefiningOp<vxnv::RingOp>();
    b_.create<vxnv::BarrierExpectOp>(loc_, barrier(ring, at.oldest, false), at.bytes);
  }

  void expandRelease(vxnv::ReleaseOp release) {
    Position& at = positions_[release.getRing()];
    auto ring = release.getRing().getDefiningOp<vxnv::RingOp>();
    if (isRefilled(ring))
      when(isLeader_, [&] { b_.create<vxnv::BarrierArriveOp>(loc_, barrier(ring, at.oldest, true)); });
    Value wraps;
    at.oldest = next(at.oldest, ring, &wraps);
  }

  //===-- products ------------------------------------------------------------------------------------------------===//

  void expandSums(vxnv::SumsOp sums) {
    // Nobody reads them: one zero stands for all.
    Value zero = b_.create<arith::ConstantOp>(loc_, b_.getZeroAttr(sums.getType().elementType()));
    sums_[sums.getResult()] = Values(static_cast<size_t>(sums.getType().perThread()), zero);
  }

  /// The words that describe the steps of an operand of `across` rows (columns) that begins `offset` bytes after `pointer`.
  Values descriptors(Value pointer, Value offset, uint32_t across, bool isAcross) {
    constexpr int64_t kUnit = 16;
    layout::OperandTile tile{.major = isAcross ? layout::Major::Across : layout::Major::Depth,
                             .across = across,
                             .depth = vxnv::kDepthBytes / 2};
    Value address = b_.create<vxt::AddressOp>(loc_, b_.getI32Type(), move(pointer, narrow(offset)));
    address = b_.create<arith::ShRUIOp>(loc_, address, constant(llvm::Log2_64(kUnit)));
    address = b_.create<arith::ExtUIOp>(loc_, b_.getI64Type(), address);
    Values words;
    for (uint32_t step = 0; step < tile.steps(); ++step) {
      auto fixed = static_cast<int64_t>(tile.descriptor(0, step).encode());
      words.push_back(add(address, b_.create<arith::ConstantIntOp>(loc_, fixed, 64)));
    }
    return words;
  }

  /// Of all steps of the depth.
  Values descriptors(Value slot, Value offset, int64_t across, bool isAcross, int64_t steps, int64_t apart) {
    Values words;
    for (int64_t step = 0; step < steps; ++step) {
      Value pointer = move(slots_.lookup(slot).first, constant(step * apart));
      words.append(descriptors(pointer, map_.lookupOrDefault(offset), static_cast<uint32_t>(across), isAcross));
    }
    return words;
  }

  template <typename Start> Values descriptorsOfB(Start dot, int64_t steps) {
    int64_t columns = llvm::alignTo(dot.getSums().getType().getColumns(), dot.getBAcross() ? 64 : 8);
    return descriptors(dot.getBSlot(), dot.getB(), columns, dot.getBAcross(), steps,
                       static_cast<int64_t>(dot.getBStep()));
  }

  /// Registers are as written for all products that start before the next wait.
  void fence() {
    if (!isFenced_)
      b_.create<vxnv::WgmmaFenceOp>(loc_);
    isFenced_ = true;
  }

  void expandStart(vxnv::DotStartOp dot) {
    auto steps = static_cast<int64_t>(dot.getSteps());
    Values a = descriptors(dot.getASlot(), dot.getA(), layout::kWarpgroupRows, dot.getAAcross(), steps,
                           static_cast<int64_t>(dot.getAStep()));
    Values b = descriptorsOfB(dot, steps);
    Values sums = sums_.lookup(dot.getSums());
    fence();
    for (auto [step, left, right] : llvm::enumerate(a, b)) {
      auto product =
          b_.create<vxnv::WgmmaOp>(loc_, mlir::ValueRange(sums).getTypes(), sums, left, right, dot.getElement(),
                                   dot.getAAcross(), dot.getBAcross(), dot.getFirst() && step == 0);
      sums = Values(product.getResults());
    }
    b_.create<vxnv::WgmmaCommitOp>(loc_);
    sums_[dot.getResult()] = sums;
  }

  void expandStart(vxnv::DotStartRegistersOp dot) {
    Values words = lookup(dot.getWords()), b = descriptorsOfB(dot, dot.steps());
    Values sums = sums_.lookup(dot.getSums());
    fence();
    for (auto [step, right] : llvm::enumerate(b)) {
      auto a = llvm::ArrayRef<Value>(words).slice(4 * step, 4);
      auto product =
          b_.create<vxnv::WgmmaRegistersOp>(loc_, mlir::ValueRange(sums).getTypes(), sums, a[0], a[1], a[2], a[3],
                                            right, dot.getElement(), dot.getBAcross(), dot.getFirst() && step == 0);
      sums = Values(product.getResults());
    }
    b_.create<vxnv::WgmmaCommitOp>(loc_);
    sums_[dot.getResult()] = sums;
  }

  void expandStore(vxnv::StoreOp store) {
    b_.create<vxnv::AsyncFenceOp>(loc_);
    b_.create<vxt::WarpBarrierOp>(loc_, Value());
    Values coordinates;
    for (Value coordinate : store.getCoordinates())
      coordinates.push_back(narrow(map_.lookupOrDefault(coordinate)));
    when(isLeader_, [&] {
      b_.create<vxnv::BulkStoreOp>(loc_, map_.lookupOrDefault(store.getSource()), store.getMap(), coordinates);
      b_.create<vxnv::BulkCommitOp>(loc_);
    });
  }

  //===-- loops ---------------------------------------------------------------------------------------------------===//

  /// What loops carry beside their own values.
  Values state() {
    Values all;
    for (auto& [ring, at] : positions_)
      all.append({at.slot, at.parity, at.oldest});
    return all;
  }
  void setState(mlir::ValueRange values) {
    for (auto& [ring, at] : positions_) {
      at.slot = values[0];
      at.parity = values[1];
      at.oldest = values[2];
      values = values.drop_front(3);
    }
  }

  Values lookup(mlir::ValueRange values) {
    Values all;
    for (Value value : values)
      if (llvm::isa<vxnv::SumsType>(value.getType()))
        all.append(sums_.lookup(value));
      else
        all.push_back(map_.lookupOrDefault(value));
    return all;
  }
  /// Binds the values of the old code to as many new ones as stand for them; returns the rest.
  mlir::ValueRange bind(mlir::ValueRange old, mlir::ValueRange values) {
    for (Value value : old) {
      size_t count = 1;
      if (auto sums = llvm::dyn_cast<vxnv::SumsType>(value.getType())) {
        count = static_cast<size_t>(sums.perThread());
        sums_[value] = Values(values.take_front(count));
      } else {
        map_.map(value, values[0]);
      }
      values = values.drop_front(count);
    }
    return values;
  }

  void emitLoop(Value lower, Value upper, Value step, mlir::Block& body, mlir::ValueRange carried,
                mlir::ValueRange results) {
    Values initial = lookup(carried);
    initial.append(state());
    auto loop = b_.create<scf::ForOp>(loc_, lower, upper, step, initial);
    {
      mlir::OpBuilder::InsertionGuard guard(b_);
      b_.setInsertionPointToStart(loop.getBody());
      map_.map(body.getArgument(0), loop.getInductionVar());
      setState(bind(body.getArguments().drop_front(), loop.getRegionIterArgs()));
      isFenced_ = false;
      expandBlock(body);
      Values yielded;
      if (!body.empty() && body.back().hasTrait<mlir::OpTrait::IsTerminator>())
        yielded = lookup(body.back().getOperands());
      yielded.append(state());
      b_.create<scf::YieldOp>(loc_, yielded);
    }
    isFenced_ = false;
    setState(bind(results, loop.getResults()));
  }

  void expandFor(scf::ForOp loop) {
    auto bound = [&](Value value) { return map_.lookupOrDefault(value); };
    emitLoop(bound(loop.getLowerBound()), bound(loop.getUpperBound()), bound(loop.getStep()), *loop.getBody(),
             loop.getInitArgs(), loop.getResults());
  }

  void expandTiles(vxnv::TilesOp tiles) {
    auto index = b_.getIndexType();
    Value first = b_.create<vxt::BlockIdOp>(loc_, index, ir::Axis::X);
    Value blocks = b_.create<vxt::GridDimOp>(loc_, index, ir::Axis::X);
    emitLoop(first, map_.lookupOrDefault(tiles.getCount()), blocks, tiles.getBody().front(), {}, {});
  }

  vxnv::RolesOp roles_;
  mlir::OpBuilder b_;
  mlir::Location loc_;
  llvm::SmallVector<vxnv::RingOp> rings_;
  Value isLeader_;         ///< the warp's first lane
  Value turn_, next_;      ///< named barriers of this consumer and of the one whose turn follows
  bool isFenced_ = false;  ///< no sums have been written since the last wgmma_fence
  mlir::IRMapping map_;
  llvm::DenseMap<Value, Values> sums_;
  llvm::DenseMap<Value, std::pair<Value, Value>> slots_;  ///< address and full barrier
  llvm::MapVector<Value, Position> positions_;
};

struct ExpandRolesPass : mlir::PassWrapper<ExpandRolesPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandRolesPass)
  llvm::StringRef getArgument() const override { return "vx-expand-roles"; }
  llvm::StringRef getDescription() const override { return "turns roles and rings of vxnv into instructions"; }
  void runOnOperation() override { expandRoles(getOperation()); }
};

}  // namespace

void expandRoles(mlir::ModuleOp module) {
  for (auto kernel : module.getOps<vxt::KernelOp>())
    for (auto roles : llvm::make_early_inc_range(kernel.getBody().front().getOps<vxnv::RolesOp>()))
      Expander(roles).run();
}

std::unique_ptr<mlir::Pass> createExpandRolesPass() { return std::make_unique<ExpandRolesPass>(); }

void registerHopperPasses() { mlir::PassRegistration<ExpandRolesPass>(); }

}  // namespace vortex::target::gpu::hopper
