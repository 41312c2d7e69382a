#include "passes/plan/bulk_products.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

static bool startsAtZero(OperandRange offsets) {
  return llvm::all_of(offsets, [](Value offset) { return getConstantIntValue(offset) == 0; });
}

bool BulkProducts::require(ir::SizeAttr condition) {
  needs_ = needs_ ? ir::sizeBinary(SizeOp::And, needs_, condition) : condition;
  return ir::constantSize(needs_) != 0;
}

void BulkProducts::requireStores(ir::SizeAttr condition) { stores_ = ir::sizeBinary(SizeOp::And, stores_, condition); }

ir::SizeAttr BulkProducts::isReachable(unsigned argument) {
  return ir::SizeAttr::get(dot_.getContext(), schedule_.bulkReach(arguments_.placementOf(argument)));
}

/// Where it is made, or the tensor itself.
ir::SizeAttr BulkProducts::isReachable(const AlignedCopy& copy) {
  auto load = copy.tile.getDefiningOp<ir::TileLoadOp>();
  ir::SizeAttr isOriginal = isReachable(cast<BlockArgument>(load.getView()).getArgNumber());
  return ir::sizeBinary(SizeOp::And, isReachable(copy.copy.argument),
                        ir::sizeBinary(SizeOp::Or, ir::sizeUnary(SizeOp::Not, copy.isAligned), isOriginal));
}

/// The tile is all of the argument: copies end with the tensor, not with the tile.
bool BulkProducts::requireWhole(unsigned argument, ArrayRef<Axis> axes) {
  Placement placement = arguments_.placementOf(argument);
  if (placement.extents.size() != axes.size())
    return false;
  for (auto [own, axis] : llvm::zip(placement.extents, axes)) {
    ir::SizeAttr extent = axes_.extent(axis);
    if (!extent || !require(ir::sizeBinary(SizeOp::Equal, ir::SizeAttr::get(dot_.getContext(), own), extent)))
      return false;
  }
  return true;
}

bool isMultiplied(Type type, ir::DotOp dot) {
  const bool isTf32 = dot->hasAttr("vx.tf32");  // f32 operands may be rounded
  return type.isF16() || type.isBF16() || type.isFloat8E4M3FN() || type.isFloat8E5M2() || type.isSignlessInteger(8) ||
         (type.isF32() && isTf32);
}

bool beginsAtZero(ir::DotOp dot) {
  Value acc = dot.getAcc();
  if (auto broadcast = acc.getDefiningOp<ir::BroadcastOp>())
    acc = broadcast.getValue();
  return matchPattern(acc, m_AnyZeroFloat()) || matchPattern(acc, m_Zero());
}

bool isStorable(Type element) {
  return element.isIntOrFloat() && llvm::is_contained({8u, 16u, 32u}, element.getIntOrFloatBitWidth());
}

/// The dimension of what `repeated` repeats that is dimension `dim` of its result; none: it is made here.
static std::optional<int64_t> dimBefore(ir::BroadcastOp repeated, int64_t dim) {
  auto type = dyn_cast<RankedTensorType>(repeated.getValue().getType());
  const auto* found = llvm::find(repeated.getDims(), dim);
  const auto before = static_cast<int64_t>(found - repeated.getDims().begin());
  if (!type || found == repeated.getDims().end() || type.getDimSize(static_cast<unsigned>(before)) == 1)
    return std::nullopt;
  return before;
}

/// Whether an integer or a narrow float is given another width here.
static bool isConversion(Operation* op) {
  return isa_and_nonnull<arith::ExtFOp, arith::TruncFOp, arith::ExtUIOp, arith::ExtSIOp>(op);
}

OperandSource sourceOf(ir::DotOp dot, bool isA, function_ref<bool(Value)> isSource) {
  Value operand = isA ? dot.getA() : dot.getB();
  const Type multiplied = getElementTypeOrSelf(operand.getType());
  auto rank = cast<RankedTensorType>(operand.getType()).getRank();
  OperandSource source{operand, multiplied, false, rank - 2, rank - 1}, last = source;
  // Transposes of narrow floats widen them and round them again. Integers may be widened for good.
  for (Operation* op = operand.getDefiningOp();
       !isSource(source.tile) && (isa_and_nonnull<ir::TransposeOp, ir::BroadcastOp>(op) || isConversion(op));
       op = source.tile.getDefiningOp()) {
    if (auto repeated = dyn_cast<ir::BroadcastOp>(op)) {  // for all of a batch
      std::optional<int64_t> rows = dimBefore(repeated, source.rows), columns = dimBefore(repeated, source.columns);
      if (!rows || !columns)
        break;
      source.rows = *rows;
      source.columns = *columns;
    }
    if (auto turned = dyn_cast<ir::TransposeOp>(op)) {
      source.rows = turned.getPermutation()[static_cast<unsigned>(source.rows)];
      source.columns = turned.getPermutation()[static_cast<unsigned>(source.columns)];
    }
    // What is rounded to something else on the way is computed, as are zeros above a sign that was extended: they are no sign.
    if (auto rounded = dyn_cast<arith::TruncFOp>(op);
        rounded && getElementTypeOrSelf(rounded.getType()) != source.element)
      break;
    if (isa<arith::ExtUIOp, arith::ExtSIOp>(op)) {
      if (source.element != multiplied)
        break;
      source.isUnsigned = isa<arith::ExtUIOp>(op);
      source.element = getElementTypeOrSelf(op->getOperand(0).getType());
    }
    source.tile = op->getOperand(0);
    if (getElementTypeOrSelf(source.tile.getType()) == source.element)
      last = source;
  }
  return last;
}

std::optional<BulkProducts::Elements> BulkProducts::addOperand(bool isA) {
  const OperandSource source = sourceOf(dot_, isA, [&](Value value) { return temporaries_.contains(value); });
  Elements elements{source.element, source.isUnsigned};
  const Value operand = source.tile;
  const Type element = source.element;
  const int64_t rank = cast<RankedTensorType>(operand.getType()).getRank(), rows = source.rows,
                columns = source.columns;
  // Only 16-bit elements may lie along the rows (columns) that the product keeps.
  const int64_t depth = isA ? columns : rows, across = isA ? rows : columns;
  const bool isInner = depth == rank - 1 || across == rank - 1;
  const bool isTurned = depth != rank - 1 && element.getIntOrFloatBitWidth() != 16;
  if (!isMultiplied(element, dot_))
    return std::nullopt;
  const auto isWritten = [&](bool isAdded) { return isAdded ? std::optional(elements) : std::nullopt; };
  if (written_.isComputed(operand))
    return isWritten(written_.addComputed(operand, static_cast<unsigned>(depth), isA, isTurned || !isInner));
  if (!isInner)
    return std::nullopt;
  const auto addArgument = [&](unsigned argument, ir::SizeAttr isReached) {
    return require(isReached) && requireWhole(argument, axes_.of(operand)) ? std::optional(elements) : std::nullopt;
  };
  const auto copy = llvm::find_if(copies_, [&](const AlignedCopy& each) { return each.tile == operand; });
  readsCopies_ &= copy != copies_.end() && !isTurned;
  if (auto temporary = temporaries_.find(operand); temporary != temporaries_.end())
    return isTurned ? std::nullopt : addArgument(temporary->second, isReachable(temporary->second));
  auto load = operand.getDefiningOp<ir::TileLoadOp>();
  auto argument = load ? dyn_cast<BlockArgument>(load.getView()) : nullptr;
  if (!argument || !startsAtZero(load.getOffsets()))
    return std::nullopt;
  if (isTurned)
    return isWritten(written_.addLoaded(load, static_cast<unsigned>(depth), isA));
  const unsigned number = argument.getArgNumber();
  return addArgument(number, copy != copies_.end() ? isReachable(*copy) : isReachable(number));
}

bool BulkProducts::addOperands() {
  std::optional<Elements> a = addOperand(true), b = a ? addOperand(false) : std::nullopt;
  if (!b || *a != *b)
    return false;
  elements_ = *a;
  Type sums = getElementTypeOrSelf(dot_.getType());
  return elements_.type.isInteger() ? sums.isInteger() && sums.getIntOrFloatBitWidth() <= 32 : sums.isF32();
}

/// Known without reading memory.
bool BulkProducts::isScalar(Value value) {
  Operation* op = value.getDefiningOp();
  if (!op || isa<ir::DimOp>(op))
    return true;
  return (op->hasTrait<OpTrait::ConstantLike>() || ir::isElementwise(op)) &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return isScalar(operand); });
}

bool BulkProducts::addTile(Value tile) {
  if (!isa<RankedTensorType>(tile.getType()))
    return isScalar(tile);
  if (tile == dot_.getResult() || !seen_.insert(tile).second)
    return true;
  if (auto temporary = temporaries_.find(tile); temporary != temporaries_.end()) {
    requireStores(isReachable(temporary->second));
    return true;
  }
  Operation* op = tile.getDefiningOp();
  if (auto load = dyn_cast_if_present<ir::TileLoadOp>(op)) {
    auto argument = dyn_cast<BlockArgument>(load.getView());
    if (!argument || !load.getInbounds() || !startsAtZero(load.getOffsets()))
      return false;
    // Beside results that copies store pairs are loaded at once, with no check of where they lie but the edges of the product. Of one column there are
    // none.
    auto view = cast<ir::ViewType>(argument.getType());
    if (view.getRank() == 0 || view.getShape().back() != 1)
      requireStores(isReachable(argument.getArgNumber()));
    return true;
  }
  bool isPlain = op && op->getNumRegions() == 0 &&
                 (ir::isElementwise(op) || isa<ir::BroadcastOp, ir::TransposeOp, ir::IotaOp, arith::ConstantOp>(op));
  return isPlain && ++operations_ <= kMostFinishing &&
         llvm::all_of(op->getOperands(), [&](Value operand) { return addTile(operand); });
}

bool BulkProducts::addResult(Type element, unsigned argument, Value value) {
  requireStores(isReachable(argument));
  return isStorable(element) && axes_.of(value) == axes_.of(dot_.getResult()) &&
         requireWhole(argument, axes_.of(value));
}

bool BulkProducts::addStore(ir::TileStoreOp store) {
  auto argument = dyn_cast<BlockArgument>(store.getView());
  return argument && startsAtZero(store.getOffsets()) &&
         addResult(getElementTypeOrSelf(store.getValue().getType()), argument.getArgNumber(), store.getValue()) &&
         addTile(store.getValue());
}

bool BulkProducts::findNeeds(const Cluster& cluster) {
  needs_ = {};
  stores_ = ir::sizeConstant(dot_.getContext(), 1);
  seen_.clear();
  operations_ = 0;
  written_.clear();
  readsCopies_ = true;
  bool fits = beginsAtZero(dot_) && addOperands();
  if (auto temporary = temporaries_.find(dot_.getResult()); temporary != temporaries_.end())
    fits = fits && addResult(getElementTypeOrSelf(dot_.getType()), temporary->second, dot_.getResult());
  for (Operation* root : cluster.roots)
    if (root != dot_)
      fits = fits && addStore(cast<ir::TileStoreOp>(root));
  return fits && (readsCopies_ || ir::constantSize(stores_) != 0);
}

//===-- costs -------------------------------------------------------------------------------------------------===//

BulkPlan::Tile BulkProducts::planTile(const Cluster& cluster, const TensorSchedule::BulkTile& tile, int64_t stepCycles,
                                      int64_t tileCycles, ir::SizeAttr workers) {
  MLIRContext* context = dot_.getContext();
  auto size = [&](int64_t value) { return ir::sizeConstant(context, value); };
  TensorSchedule bulk = schedule_;
  bulk.dotRows = bulk.dotRowStep = tile.rows;
  bulk.dotColumns = tile.columns;
  Chunks sizes(context, bulk, axes_, clusters_);
  BulkPlan::Tile planned{tile.plan, sizes.choose(cluster), {}, {}, {}};
  planned.count = sizes.blockCount(cluster, planned.pieces);
  planned.blocks = ir::sizeBinary(SizeOp::Min, planned.count, workers);
  ir::SizeAttr depth = axes_.extent(axes_.of(dot_.getA()).back());
  const int64_t bits = elements_.type.getIntOrFloatBitWidth();
  ir::SizeAttr steps = ir::sizeBinary(SizeOp::CeilDiv, depth, size(tile.stepBytes * 8 / bits));
  ir::SizeAttr perTile =
      ir::sizeBinary(SizeOp::Add, ir::sizeBinary(SizeOp::Mul, steps, size(stepCycles)), size(tileCycles));
  ir::SizeAttr waves = ir::sizeBinary(SizeOp::CeilDiv, planned.count, workers);
  planned.cost = ir::sizeBinary(SizeOp::Add, size(tile.startCycles), ir::sizeBinary(SizeOp::Mul, waves, perTile));
  return planned;
}

std::optional<BulkPlan> BulkProducts::plan(const Cluster& cluster, ir::DotOp dot, ir::SizeAttr workers,
                                           ArrayRef<AlignedCopy> copies) {
  // Measured on an H200: 64×4096×4096 in 32 tiles takes 15.4 µs, split along the depth 17.9.
  constexpr int64_t kBusyShare = 5;
  BulkPlan plan;
  dot_ = dot;
  copies_ = copies;
  if (!findNeeds(cluster) || ir::argumentSlots(arguments_.types()).back() > schedule_.bulkSlots)
    return std::nullopt;
  written_.addTemporaries();
  for (const WrittenOperand& operand : written_.all())
    if (!require(isReachable(operand.copy.argument)))
      return std::nullopt;
  plan.needs = needs_;
  plan.stores = stores_;
  plan.written.assign(written_.all().begin(), written_.all().end());
  auto size = [&](int64_t value) { return ir::sizeConstant(dot.getContext(), value); };
  SmallVector<Axis> axes = axes_.of(dot.getResult());
  ir::SizeAttr rows = axes_.extent(axes[axes.size() - 2]), columns = axes_.extent(axes.back());
  auto isAtLeast = [&](ir::SizeAttr extent, int64_t least) {
    return ir::sizeBinary(SizeOp::Less, size(least - 1), extent);
  };
  auto both = [](ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(SizeOp::And, a, b); };
  plan.pays = both(written_.pay(cluster, dot, workers),
                   both(isAtLeast(rows, schedule_.bulkRows), isAtLeast(columns, schedule_.bulkColumns)));
  const bool needsParts = !elements_.type.isInteger() && elements_.type.getIntOrFloatBitWidth() == 8;
  for (const TensorSchedule::BulkTile& tile : schedule_.bulkTiles)
    if (int64_t cycles = needsParts ? tile.partCycles : tile.stepCycles) {
      plan.tiles.push_back(planTile(cluster, tile, cycles, tile.tileCycles, workers));
      if (readsCopies_ && tile.anyhowStepCycles > 0)
        plan.anyhowTiles.push_back(
            planTile(cluster, tile, needsParts ? cycles : tile.anyhowStepCycles, tile.anyhowTileCycles, workers));
    }
  if (plan.tiles.empty())
    return std::nullopt;
  if (plan.anyhowTiles.empty())
    plan.needs = ir::sizeBinary(SizeOp::And, plan.needs, plan.stores);
  ir::SizeAttr mostTiles = plan.tiles.back().count;
  plan.isFull = both(isAtLeast(ir::sizeBinary(SizeOp::Min, rows, columns), schedule_.bulkSide),
                     ir::sizeBinary(SizeOp::Less, workers, ir::sizeBinary(SizeOp::Mul, mostTiles, size(kBusyShare))));
  return plan;
}

}  // namespace vortex::passes
