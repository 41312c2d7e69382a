#include "passes/tile_products.h"

#include "ir/launch.h"
#include "passes/build/piece_cloner.h"
#include "passes/phase_marks.h"
#include "passes/plan/bulk_products.h"
#include "passes/plan/entry_arguments.h"
#include "passes/plan/size_expression.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace vortex::passes {
namespace {

using namespace mlir;
using SizeOp = size::Op;

/// Extents along which bulk copies' coordinates, signed 32-bit numbers, cannot wrap wherever a window lies.
constexpr int64_t kMostExtent = int64_t{1} << 30;
/// Blocks along the second axis of the grid that neighbours take before the next along the first.
constexpr int64_t kGroup = 8;

class TileProduct {
public:
  TileProduct(ir::EntryOp entry, ir::KernelOp kernel, const TensorSchedule& rules)
      : entry_(entry), kernel_(kernel), rules_(rules), arguments_(entry) {}

  void run() {
    if (!findProduct() || !findTile() || !addOperands() || !addStores() ||
        ir::argumentSlots(arguments_.types()).back() > rules_.bulkSlots)
      return;
    VORTEX_CHECK(arguments_.nextLet() == kernel_.getNumArguments(), "tile code has no temporaries");
    const unsigned workers = arguments_.addLet("workers");
    arguments_.assign();
    kernel_.insertArgument(workers, arguments_.types()[workers], {}, kernel_.getLoc());
    build(workers);
  }

private:
  MLIRContext* context() const { return arguments_.context(); }
  ir::SizeAttr size(int64_t value) const { return ir::sizeConstant(context(), value); }

  /// The kernel has nothing but one product, windows that are read and stored, what is computed element by element, and scalars that follow
  /// from the launch and the block's number.
  bool findProduct() {
    for (Operation& op : kernel_.getBody().front()) {
      if (auto dot = dyn_cast<ir::DotOp>(op)) {
        if (dot_)
          return false;
        dot_ = dot;
      } else if (auto store = dyn_cast<ir::TileStoreOp>(op)) {
        stores_.push_back(store);
      } else if (op.getNumRegions() != 0 ||
                 !(isa<ir::TileLoadOp>(op) || op.hasTrait<OpTrait::IsTerminator>() || isMemoryEffectFree(&op))) {
        return false;
      }
    }
    if (!dot_ || stores_.empty() || cast<RankedTensorType>(dot_.getType()).getRank() != 2)
      return false;
    Type sums = getElementTypeOrSelf(dot_.getType());
    return (sums.isF32() || sums.isInteger(32)) && beginsAtZero(dot_);
  }

  bool findTile() {
    auto shape = cast<RankedTensorType>(dot_.getType()).getShape();
    auto found = llvm::find_if(rules_.bulkTiles, [&](const TensorSchedule::BulkTile& tile) {
      return tile.rows == shape[0] && tile.columns == shape[1];
    });
    tile_ = found == rules_.bulkTiles.end() ? nullptr : &*found;
    return tile_ && tile_->isForTileCode;
  }

  bool require(ir::SizeAttr condition) {
    needs_ = needs_ ? ir::sizeBinary(SizeOp::And, needs_, condition) : condition;
    return ir::constantSize(needs_) != 0;
  }

  /// A tensor of the launch that copies reach, whose extents windows cannot leave by wrapping.
  bool requireReachable(Value view) {
    auto argument = dyn_cast<BlockArgument>(view);
    if (!argument || cast<ir::ViewType>(view.getType()).getRank() != 2)
      return false;
    Placement placement = arguments_.placementOf(argument.getArgNumber());
    for (size::Expr extent : placement.extents)
      if (!require(ir::sizeBinary(SizeOp::Less, ir::SizeAttr::get(context(), extent), size(kMostExtent))))
        return false;
    return require(ir::SizeAttr::get(context(), rules_.bulkReach(placement)));
  }

  bool addOperands() {
    auto a = addOperand(true), b = a ? addOperand(false) : std::nullopt;
    return b && *a == *b && a->first.isInteger() == getElementTypeOrSelf(dot_.getType()).isInteger();
  }

  /// What is multiplied, and whether it has no sign. Only 16-bit elements may lie across the depth.
  std::optional<std::pair<Type, bool>> addOperand(bool isA) {
    const OperandSource source = sourceOf(dot_, isA, [](Value) { return false; });
    auto load = source.tile.getDefiningOp<ir::TileLoadOp>();
    if (!load || !isZeroOutside(load))
      return std::nullopt;
    const Type element = source.element;
    const auto depth = static_cast<unsigned>(isA ? source.columns : source.rows);
    const bool isNarrowFloat = element.isFloat8E4M3FN() || element.isFloat8E5M2();
    const bool isInner = depth + 1 == static_cast<unsigned>(load.getType().getRank());
    const bool fits = isMultiplied(element, dot_) && (isInner || element.getIntOrFloatBitWidth() == 16) &&
                      (!isNarrowFloat || tile_->partCycles > 0);
    loads_.push_back(load);
    if (!fits || !requireReachable(load.getView()) || !isZero(load.getOffsets()[depth]) || !requireDepth(load, depth))
      return std::nullopt;
    return std::pair(element, source.isUnsigned);
  }

  static bool isZero(Value offset) {
    ir::SizeAttr known = sizeExpression(offset);
    return known && ir::constantSize(known) == 0;
  }

  static bool isZeroOutside(ir::TileLoadOp load) {
    return !load.getOther() || matchPattern(load.getOther(), m_AnyZeroFloat()) ||
           matchPattern(load.getOther(), m_Zero());
  }

  /// Copies take whole steps: past the window is nothing of the tensor, or the window is of whole steps.
  bool requireDepth(ir::TileLoadOp load, unsigned dim) {
    const OpFoldResult own = load.getType().isDynamicDim(dim)
                                 ? OpFoldResult(load.getSizes().back())
                                 : Builder(context()).getIndexAttr(load.getType().getDimSize(dim));
    if (load.getType().isDynamicDim(dim) && load.getSizes().size() != 1)
      return false;
    ir::SizeAttr depth = sizeExpression(own);
    if (!depth)
      return false;
    const unsigned argument = cast<BlockArgument>(load.getView()).getArgNumber();
    ir::SizeAttr extent = ir::SizeAttr::get(context(), arguments_.placementOf(argument).extents[dim]);
    const int64_t step = tile_->stepBytes * 8 / load.getType().getElementTypeBitWidth();
    ir::SizeAttr isWhole = ir::sizeBinary(SizeOp::Equal, ir::sizeBinary(SizeOp::Mod, depth, size(step)), size(0));
    ir::SizeAttr isAll = ir::sizeBinary(SizeOp::Less, extent, ir::sizeBinary(SizeOp::Add, depth, size(1)));
    return require(ir::sizeBinary(SizeOp::Less, size(0), depth)) && require(ir::sizeBinary(SizeOp::Or, isWhole, isAll));
  }

  bool addStores() {
    for (ir::TileStoreOp store : stores_) {
      auto shape = cast<RankedTensorType>(store.getValue().getType()).getShape();
      if (!isStorable(getElementTypeOrSelf(store.getValue().getType())) ||
          shape != cast<RankedTensorType>(dot_.getType()).getShape() || !requireReachable(store.getView()) ||
          !isFinishing(store.getValue()))
        return false;
    }
    return true;
  }

  /// Computed from the product, other windows and scalars, element by element.
  bool isFinishing(Value tile) {
    if (!isa<RankedTensorType>(tile.getType()) || tile == dot_.getResult() || !seen_.insert(tile).second)
      return true;
    Operation* op = tile.getDefiningOp();
    if (auto load = dyn_cast_if_present<ir::TileLoadOp>(op))
      return isa<BlockArgument>(load.getView()) && !isStored(load.getView()) && load.getSizes().empty();
    const bool isPlain = op && op->getNumRegions() == 0 &&
                         (ir::isElementwise(op) || isa<ir::BroadcastOp, ir::IotaOp, arith::ConstantOp>(op));
    return isPlain && ++operations_ <= kMostFinishing &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return isFinishing(operand); });
  }

  /// Pairs are stored while others are still to be read.
  bool isStored(Value view) const {
    return llvm::any_of(stores_, [&](ir::TileStoreOp store) { return store.getView() == view; });
  }

  void build(unsigned workers) {
    auto grid = llvm::to_vector(kernel_.getGridAttr().getAsRange<ir::SizeAttr>());
    ir::SizeAttr count = ir::sizeBinary(SizeOp::Mul, ir::sizeBinary(SizeOp::Mul, grid[0], grid[1]), grid[2]);
    ir::SizeAttr all = ir::sizeScalar(context(), workers);
    ir::LaunchBuilder launch(ir::createLaunch(entry_));
    launch.let(kernel_.getLoc(), workers, ir::sizeClusters(context()));
    launch.choose(kernel_.getLoc(),
                  {{.name = "bulk", .needs = needs_, .emit = [&] { launch.phase(bulkPhase(grid, count, all)); }},
                   {.name = "blocks", .emit = [&] { launch.phase(kernel_); }}});
  }

  ir::KernelOp bulkPhase(ArrayRef<ir::SizeAttr> grid, ir::SizeAttr count, ir::SizeAttr workers) {
    IRMapping mapping;
    auto phase = cast<ir::KernelOp>(OpBuilder(kernel_).clone(*kernel_, mapping));
    phase.setSymName((entry_.getSymName() + ".bulk").str());
    Attribute one = size(1);
    phase.setGridAttr(ArrayAttr::get(context(), {ir::sizeBinary(SizeOp::Min, count, workers), one, one}));
    phase.setBlockAttr(ArrayAttr::get(context(), {one, one, one}));
    phase->setAttr(kTiles, count);
    auto dot = cast<ir::DotOp>(mapping.lookup(dot_.getOperation()));
    dot->setAttr(kUnit, StringAttr::get(context(), tile_->plan));
    placeBlocks(phase, grid);
    for (ir::TileLoadOp load : loads_)
      keepNear(cast<ir::TileLoadOp>(mapping.lookup(load.getOperation())).getOffsetsMutable());
    for (ir::TileStoreOp store : stores_)
      keepNear(cast<ir::TileStoreOp>(mapping.lookup(store.getOperation())).getOffsetsMutable());
    return phase;
  }

  /// The program's block of a tile: bands of kGroup along the second axis, each along the first.
  static void placeBlocks(ir::KernelOp phase, ArrayRef<ir::SizeAttr> grid) {
    Block& body = phase.getBody().front();
    SmallVector<ir::BlockIdOp> ids(body.getOps<ir::BlockIdOp>());
    OpBuilder b = OpBuilder::atBlockBegin(&body);
    Location loc = phase.getLoc();
    auto constant = [&](int64_t value) -> Value { return b.create<arith::ConstantIndexOp>(loc, value); };
    auto div = [&](Value x, Value y) -> Value { return b.create<arith::DivUIOp>(loc, x, y); };
    auto rem = [&](Value x, Value y) -> Value { return b.create<arith::RemUIOp>(loc, x, y); };
    auto mul = [&](Value x, Value y) -> Value { return b.create<arith::MulIOp>(loc, x, y); };
    Value tile = b.create<ir::BlockIdOp>(loc, ir::Axis::X);
    Value width = emitSize(b, loc, grid[0], body.getArguments()),
          height = emitSize(b, loc, grid[1], body.getArguments());
    Value plane = mul(width, height);
    Value z = div(tile, plane), place = rem(tile, plane);
    Value ofBand = mul(width, constant(kGroup));
    Value first = mul(div(place, ofBand), constant(kGroup)), inBand = rem(place, ofBand);
    Value rows = b.create<arith::MinUIOp>(loc, b.create<arith::SubIOp>(loc, height, first), constant(kGroup));
    Value y = b.create<arith::AddIOp>(loc, first, rem(inBand, rows)), x = div(inBand, rows);
    for (ir::BlockIdOp id : ids) {
      id.replaceAllUsesWith(id.getAxis() == ir::Axis::X ? x : id.getAxis() == ir::Axis::Y ? y : z);
      id.erase();
    }
  }

  /// Windows that are far outside stay outside as 32-bit coordinates.
  static void keepNear(MutableOperandRange offsets) {
    Operation* op = offsets.getOwner();
    OpBuilder b(op);
    for (OpOperand& offset : offsets) {
      if (getConstantIntValue(offset.get()))
        continue;
      Value least = b.create<arith::ConstantIndexOp>(op->getLoc(), -kMostExtent);
      Value most = b.create<arith::ConstantIndexOp>(op->getLoc(), kMostExtent);
      Value above = b.create<arith::MaxSIOp>(op->getLoc(), offset.get(), least);
      offset.set(b.create<arith::MinSIOp>(op->getLoc(), above, most));
    }
  }

  ir::EntryOp entry_;
  ir::KernelOp kernel_;
  const TensorSchedule& rules_;
  EntryArguments arguments_;
  ir::DotOp dot_;
  SmallVector<ir::TileStoreOp> stores_;
  SmallVector<ir::TileLoadOp, 2> loads_;
  const TensorSchedule::BulkTile* tile_ = nullptr;
  llvm::DenseSet<Value> seen_;
  unsigned operations_ = 0;
  ir::SizeAttr needs_;
};

}  // namespace

void runTileProductsInBulk(ModuleOp module, const TensorSchedule& rules) {
  auto kernels = llvm::to_vector(module.getOps<ir::KernelOp>());
  auto entries = module.getOps<ir::EntryOp>();
  if (rules.bulkTiles.empty() || kernels.size() != 1 || !llvm::hasSingleElement(entries))
    return;
  TileProduct(*entries.begin(), kernels[0], rules).run();
}

}  // namespace vortex::passes
