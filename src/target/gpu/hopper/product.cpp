// producer (one thread):                      consumers (64 rows each, or two with half of the columns):
//   for each tile of the block                  for each tile of the block
//     for each 128 bytes of the depth             wait for a slot, start its products
//       wait for an empty slot                    for each further 128 bytes of the depth
//       copy both operands into it                  wait for a slot, start its products
//                                                   wait for the products before, release their slot
//                                                 wait for the last ones, release their slot
//                                                 finish the sums, start storing them
//
// Of 8-bit floats a step's sums are waited for and added apart: meanwhile the other consumer multiplies.
//
// One group of products is in flight while the next is started. The tensor cores wait for nothing else while the ring is full. The grid is
// what the device runs at once: the producer is ahead by a ring over tile boundaries, and stores run beside the next tile's products.
#include "target/gpu/hopper/product.h"

#include "base/check.h"
#include "ir/size_attr.h"
#include "passes/phase_marks.h"
#include "target/gpu/hopper/anyhow_epilogue.h"
#include "target/gpu/hopper/attention.h"
#include "target/gpu/hopper/configuration.h"
#include "target/gpu/hopper/epilogue.h"
#include "target/gpu/hopper/planned_phase.h"
#include "target/gpu/tiles/tiles.h"

namespace vortex::target::gpu::hopper {

namespace vxnv = ir::vxnv;

namespace {

std::optional<Configuration> configurationOf(ir::DotOp dot) {
  auto plan = dot->getAttrOfType<mlir::StringAttr>(passes::kUnit);
  return plan ? parseConfiguration(plan.str()) : std::nullopt;
}

ir::DotOp findProduct(ir::KernelOp phase) {
  ir::DotOp found;
  phase.walk([&](ir::DotOp dot) {
    if (configurationOf(dot))
      found = dot;
  });
  return found;
}

class Product : public PlannedPhase {
public:
  Product(Lowering& lowering, ir::DotOp dot) : l(lowering), dot_(dot), plan_(*configurationOf(dot)), maps_(lowering) {}

  int64_t chooseThreads(mlir::Operation*, std::optional<int64_t>) override { return plan_.threads(); }
  void lower(mlir::Operation* op) override {
    if (auto store = llvm::dyn_cast<ir::TileStoreOp>(op))
      stores_.push_back(store);
  }
  /// The end of the phase: it has no control flow.
  void leaveScope() override {
    if (l.state.error.empty())
      emit();
  }

private:
  void emit() {
    auto kernel = llvm::cast<ir::vxt::KernelOp>(l.b.getInsertionBlock()->getParentOp());
    kernel.setMinBlocks(1);
    Operand a(l, maps_, dot_, true, plan_.rows), b(l, maps_, dot_, false, plan_.columns);
    const int64_t columns = plan_.consumerColumns();
    std::optional<Epilogue> byCopies;
    std::optional<AnyhowEpilogue> byThreads;
    if (l.phase->hasAttr(passes::kAnyPlacement))
      byThreads.emplace(l, dot_.getResult(), stores_, columns);
    else
      byCopies.emplace(l, maps_, dot_.getResult(), tiles::rankOf(dot_.getResult()) - 2, stores_, columns);
    allocate(a.bytes() + b.bytes());
    count_ = l.size(l.phase->getAttrOfType<ir::SizeAttr>(passes::kTiles));
    Value depth = tiles::Evaluator(l).extents(dot_.getA()).back();
    int64_t step = kDepthBytes / ir::vxt::scalarBytes(a.elementType());
    steps_ = l.div(l.add(depth, l.constant(step - 1)), l.constant(step));
    ring_ = l.b.create<vxnv::RingOp>(l.loc, vxnv::RingType::get(l.b.getContext()), plan_.stages, a.bytes() + b.bytes(),
                                     ringAt_, barriers_);
    auto roles = l.b.create<vxnv::RolesOp>(
        l.loc, plan_.consumers(), llvm::ArrayRef<int64_t>{plan_.producerRegisters(), plan_.consumerRegisters()});
    {
      mlir::OpBuilder::InsertionGuard guard(l.b);
      l.b.createBlock(&roles.getProducer());
      forEachTile([&] { emitCopies(a, b, step); });
      mlir::Block* consumer = l.b.createBlock(&roles.getConsumer());
      group_ = consumer->addArgument(l.b.getIndexType(), l.loc);
      forEachTile([&] {
        Value sums = multiply(a, b);
        auto [row, column, staging] = placeOfWarp();
        if (byThreads)
          byThreads->emit(sums, row, column, staging);
        else
          byCopies->emit(sums, row, column, staging);
      });
      if (byCopies)
        byCopies->finish();
    }
    kernel->setAttr(vxnv::kMaps, maps_.attribute());
    eraseUnused(kernel.getBody().front());
  }

  void allocate(int64_t slotBytes) {
    int64_t ring = slotBytes * plan_.stages, staging = plan_.consumers() * vxnv::kGroupWarps * kStagedBytes;
    SharedMemory::Piece all =
        l.shared().take(ring + staging + 2 * 8 * static_cast<int64_t>(plan_.stages), 1024, "ring of stages");
    ringAt_ = all.offset;
    staging_ = ringAt_ + ring;
    barriers_ = staging_ + staging;
  }

  void forEachTile(llvm::function_ref<void()> body) {
    auto tiles = l.b.create<vxnv::TilesOp>(l.loc, count_);
    mlir::OpBuilder::InsertionGuard guard(l.b);
    mlir::Block* block = l.b.createBlock(&tiles.getBody());
    Value tile = block->addArgument(l.b.getIndexType(), l.loc);
    // What the phase computes from the block's number, from the tile's.
    for (mlir::Operation& op : l.phase.getBody().front())
      if (auto id = llvm::dyn_cast<ir::BlockIdOp>(op))
        l.setScalar(id, tile);
      else if (isScalar(op))
        l.lowerOp(&op);
    body();
  }

  static bool isScalar(mlir::Operation& op) {
    return op.getNumResults() == 1 && !llvm::isa<mlir::RankedTensorType, ir::ViewType>(op.getResult(0).getType()) &&
           !op.hasTrait<mlir::OpTrait::IsTerminator>();
  }

  void emitCopies(Operand& a, Operand& b, int64_t step) {
    l.emitFor(l.constant(0), steps_, l.constant(1), {}, [&](Value k, mlir::ValueRange) {
      Value slot = l.b.create<vxnv::AcquireOp>(l.loc, vxnv::SlotType::get(l.b.getContext()), ring_);
      Value depth = l.mul(k, l.constant(step));
      a.copy(slot, depth, 0);
      b.copy(slot, depth, a.bytes());
      l.b.create<vxnv::PublishOp>(l.loc, ring_);
      return Values{};
    });
  }

  Value multiply(const Operand& a, const Operand& b) {
    constexpr int64_t kRowBlock = 64 * kDepthBytes;
    bool splitsColumns = plan_.rows == 64;
    Value left = splitsColumns ? l.constant(0) : l.mul(group_, l.constant(kRowBlock));
    Value right = l.constant(a.bytes());
    if (splitsColumns)
      right = l.add(l.mul(group_, l.constant(int64_t(plan_.consumerColumns()) * kDepthBytes)), right);
    const bool isApart = ir::vxt::scalarBytes(a.elementType()) == 1 && !a.elementType().isInteger();
    auto start = [&](Value sums, bool isFirst) -> Value {
      Value slot = l.b.create<vxnv::AwaitOp>(l.loc, vxnv::SlotType::get(l.b.getContext()), ring_);
      sums = l.b.create<vxnv::DotStartOp>(l.loc, sums.getType(), sums, slot, left, slot, right, a.elementType(),
                                          a.isAcross(), b.isAcross(), isFirst);
      return l.b.create<vxnv::DotWaitOp>(l.loc, sums.getType(), sums, isApart ? 0 : 1);
    };
    auto type = vxnv::SumsType::get(l.b.getContext(), plan_.consumerColumns(),
                                    a.elementType().isInteger() ? l.b.getI32Type() : mlir::Type());
    if (isApart)
      return addParts(type, [&] { return start(l.b.create<vxnv::SumsOp>(l.loc, type), true); });
    Value sums = start(l.b.create<vxnv::SumsOp>(l.loc, type), true);
    sums = l.emitFor(l.constant(1), steps_, l.constant(1), sums, [&](Value, mlir::ValueRange carried) {
      Value next = start(carried[0], false);
      l.b.create<vxnv::ReleaseOp>(l.loc, ring_);
      return Values{next};
    })[0];
    sums = l.b.create<vxnv::DotWaitOp>(l.loc, sums.getType(), sums, 0);
    l.b.create<vxnv::ReleaseOp>(l.loc, ring_);
    return sums;
  }

  /// The unit keeps too few bits of sums of 8-bit floats for a long depth: those of each step are added in f32.
  Value addParts(vxnv::SumsType type, llvm::function_ref<Value()> multiplyStep) {
    auto partOf = [&](Value sums, int64_t i) -> Value {
      return l.b.create<vxnv::SumOp>(l.loc, type.elementType(), sums, i);
    };
    Value first = multiplyStep();
    Values sums;
    for (int64_t i = 0; i < type.perThread(); ++i)
      sums.push_back(partOf(first, i));
    l.b.create<vxnv::ReleaseOp>(l.loc, ring_);
    sums = l.emitFor(l.constant(1), steps_, l.constant(1), sums, [&](Value, mlir::ValueRange carried) {
      Value part = multiplyStep();
      l.b.create<vxnv::ReleaseOp>(l.loc, ring_);
      Values next;
      for (auto [i, sum] : llvm::enumerate(carried))
        next.push_back(l.b.create<mlir::arith::AddFOp>(l.loc, sum, partOf(part, static_cast<int64_t>(i))));
      return next;
    });
    return l.b.create<vxnv::SumsOfOp>(l.loc, type, sums);
  }

  struct WarpPlace {
    Value row, column;  ///< of the tile
    Value staging;
  };
  WarpPlace placeOfWarp() {
    constexpr int64_t kWarpRows = 16;
    bool splitsColumns = plan_.rows == 64;
    Value warp = l.rem(l.warp(), l.constant(vxnv::kGroupWarps));
    Value row = l.mul(warp, l.constant(kWarpRows)), column = l.constant(0);
    if (splitsColumns)
      column = l.mul(group_, l.constant(plan_.consumerColumns()));
    else
      row = l.add(l.mul(group_, l.constant(64)), row);
    Value number = l.add(l.mul(group_, l.constant(vxnv::kGroupWarps)), warp);
    Value base =
        l.b.create<ir::vxt::SharedOp>(l.loc, ir::vxt::PtrType::get(l.b.getContext(), ir::Space::Shared), staging_);
    Value staging = l.b.create<ir::vxt::OffsetOp>(l.loc, base.getType(), base, l.mul(number, l.constant(kStagedBytes)),
                                                  l.b.getI8Type());
    return {row, column, staging};
  }

  /// Scalars of the phase are computed again per tile.
  static void eraseUnused(mlir::Block& block) {
    for (mlir::Operation& op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (mlir::isOpTriviallyDead(&op))
        op.erase();
  }

  Lowering& l;
  ir::DotOp dot_;
  Configuration plan_;
  Maps maps_;
  llvm::SmallVector<ir::TileStoreOp> stores_;
  int64_t ringAt_ = 0, staging_ = 0, barriers_ = 0;  ///< in shared memory
  Value count_, steps_, ring_, group_;
};

}  // namespace

bool isProduct(ir::KernelOp phase) { return bool(findProduct(phase)); }
bool usesBulkCopies(ir::KernelOp phase) { return isProduct(phase) || isAttention(phase); }

std::unique_ptr<TileLowering> makeTileLowering(Lowering& lowering) {
  if (ir::DotOp dot = findProduct(lowering.phase))
    return std::make_unique<Product>(lowering, dot);
  if (auto attention = makeAttention(lowering))
    return attention;
  return tiles::makeTileLowering(lowering);
}

}  // namespace vortex::target::gpu::hopper
