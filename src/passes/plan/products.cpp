#include "passes/plan/products.h"

#include "passes/build/phase_builder.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

ProductWays Products::plan(const Cluster& cluster, ir::SizeAttr workers) {
  ProductWays ways;
  addCopies(cluster, ways);
  addBulk(cluster, workers, ways);
  addSplit(cluster, ways);
  addThin(cluster, ways);
  if (ways.thin && ways.isTiny) {  // a launch more costs less than one block's long way down the depth
    ir::SizeAttr isDeep = combine(SizeOp::Less, size(schedule_.dotSplitDepth - 1), axes_.extent(ways.thin->depth));
    ways.thin->when = combine(SizeOp::Or, ways.thin->when, combine(SizeOp::And, ways.isTiny, isDeep));
  }
  return ways;
}

void Products::addBulk(const Cluster& cluster, ir::SizeAttr workers, ProductWays& ways) {
  ir::DotOp dot = schedule_.bulkTiles.empty() ? nullptr : splittable(cluster);
  if (dot)
    ways.bulk = bulk_.plan(cluster, dot, workers, ways.copies);
  if (!ways.bulk)
    return;
  ir::SizeAttr isBetter = combine(SizeOp::Or, ways.bulk->isFull, ir::sizeUnary(SizeOp::Not, paysToSplit(cluster, dot)));
  ways.bulkWhen = combine(SizeOp::And, ways.bulk->pays, isBetter);
}

//===-- sizes of blocks ---------------------------------------------------------------------------------------===//

ir::SizeAttr Products::isSmall(ir::DotOp dot, ir::SizeAttr blocks) {
  if (schedule_.smallDotRows == 0)
    return {};
  ir::SizeAttr isSmall = combine(SizeOp::Less, blocks, size(schedule_.smallDotBelow));
  SmallVector<Axis> axes = axes_.of(dot.getResult());
  auto isHalfEmpty = [&](Axis axis, int64_t whole) {
    return combine(SizeOp::Less, axes_.extent(axis), size(whole / 2 + 1));
  };
  if (ir::SizeAttr rows = axes_.extent(axes[axes.size() - 2]); rows && axes_.extent(axes.back()))
    isSmall = combine(SizeOp::Or, isSmall,
                      combine(SizeOp::Or, isHalfEmpty(axes[axes.size() - 2], schedule_.dotRows),
                              isHalfEmpty(axes.back(), schedule_.dotColumns)));
  return isSmall;
}

TensorSchedule Products::small() const {
  TensorSchedule small = schedule_;
  if (schedule_.smallDotRows == 0)
    return small;
  small.dotRows = small.dotRowStep = schedule_.smallDotRows;
  small.dotColumns = schedule_.smallDotColumns;
  small.dotPlan = schedule_.smallDotPlan;
  return small;
}

TensorSchedule Products::thin() const {
  TensorSchedule thin = schedule_;
  thin.dotRows = thin.dotRowStep = schedule_.thinDotRows;
  thin.dotColumns = schedule_.thinDotColumns;
  thin.dotPlan = schedule_.thinDotPlan;
  return thin;
}

ir::SizeAttr Products::blockCount(const Cluster& cluster, const TensorSchedule& schedule) {
  Chunks sizes(context_, schedule, axes_, clusters_);
  return sizes.blockCount(cluster, sizes.choose(cluster));
}

/// Elements of a temporary's row, which then starts aligned.
ir::SizeAttr Products::alignedRow(ir::SizeAttr elements) {
  constexpr int64_t kRow = 64;
  return combine(SizeOp::Mul, combine(SizeOp::CeilDiv, elements, size(kRow)), size(kRow));
}

//===-- pieces of the depth -----------------------------------------------------------------------------------===//

/// Rows and columns are split already, and what follows the product is elementwise: a later phase can do it to the added partial sums.
ir::DotOp Products::splittable(const Cluster& cluster) {
  ir::DotOp dot;
  for (Operation* root : cluster.roots) {
    auto product = dyn_cast<ir::DotOp>(root);
    if ((product && dot) || (!product && !isa<ir::TileStoreOp>(root)))
      return nullptr;
    dot = product ? product : dot;
  }
  if (cluster.kind != Cluster::Kind::Parallel || !dot)
    return nullptr;
  Axis depth = axes_.of(dot.getA()).back();
  bool isSplit = llvm::is_contained(cluster.parallel, depth) || !axes_.extent(depth);
  for (Axis axis : axes_.of(dot.getResult()))
    isSplit |= !llvm::is_contained(cluster.parallel, axis);
  return isSplit ? nullptr : dot;
}

ir::SizeAttr Products::paysToSplit(const Cluster& cluster, ir::DotOp dot) {
  return schedule_.dotSplitBlocks == 0 ? size(0) : paysToSplit(cluster, dot, schedule_.dotSplitDepth);
}

ir::SizeAttr Products::paysToSplit(const Cluster& cluster, ir::DotOp dot, int64_t leastDepth) {
  ir::SizeAttr depth = axes_.extent(axes_.of(dot.getA()).back());
  // A quarter of the blocks wanted, or less: the second phase costs more than a few idle cores. So few are few in blocks of any size.
  return combine(SizeOp::And, combine(SizeOp::Less, blockCount(cluster, small()), size(fewBlocks())),
                 combine(SizeOp::Less, size(2 * leastDepth - 1), depth));
}

void Products::addSplit(const Cluster& cluster, ProductWays& ways) {
  ir::DotOp dot = splittable(cluster);
  ir::SizeAttr when = dot ? paysToSplit(cluster, dot) : size(0);
  if (ir::constantSize(when) == 0)
    return;
  DepthSplit& split = ways.split.emplace();
  split.when = when;
  split.depth = axes_.of(dot.getA()).back();
  addBlocks(cluster, dot, split);
  ir::SizeAttr blocks = blockCount(cluster, split.blocks.back().schedule);
  for (const DepthSplit::Blocks& each : llvm::drop_begin(llvm::reverse(split.blocks)))
    blocks = ir::SizeAttr::get(context_, size::make(SizeOp::Select, each.when.getExpr(),
                                                    blockCount(cluster, each.schedule).getExpr(), blocks.getExpr()));
  ir::SizeAttr depth = axes_.extent(split.depth);
  addPieces(dot, blocks, combine(SizeOp::FloorDiv, depth, size(schedule_.dotSplitDepth)), split);
}

/// Of few rows in few blocks: the second operand is read once as it lies, so that a copy would cost more than it saves. Small operands of a long depth
/// are read by the same code.
void Products::addThin(const Cluster& cluster, ProductWays& ways) {
  ir::DotOp dot = ways.split && ways.split->blocks.size() == 2 ? splittable(cluster) : nullptr;
  ir::TileLoadOp load = dot && schedule_.dotAlignment > 0 ? copyableLoad(dot.getB()) : nullptr;
  if (!load)
    return;
  ir::SizeAttr isAnyhow = ir::sizeUnary(SizeOp::Not, isAligned(cast<BlockArgument>(load.getView()).getArgNumber()));
  DepthSplit& split = ways.thin.emplace();
  split.depth = ways.split->depth;
  split.blocks.push_back(ways.split->blocks[0]);
  DepthSplit::Blocks& blocks = split.blocks[0];
  split.when = combine(SizeOp::And, paysToSplit(cluster, dot, schedule_.dotThinDepth),
                       combine(SizeOp::And, blocks.when, isAnyhow));
  blocks.when = {};
  ir::SizeAttr most = combine(SizeOp::CeilDiv, axes_.extent(split.depth), size(schedule_.dotThinDepth));
  addPieces(dot, blockCount(cluster, blocks.schedule), most, split);
}

/// As many pieces as make `blocks` enough for the device, but no more than `most`.
void Products::addPieces(ir::DotOp dot, ir::SizeAttr blocks, ir::SizeAttr most, DepthSplit& split) {
  constexpr int64_t kStep = 128;  // pieces start at aligned elements
  ir::SizeAttr depth = axes_.extent(split.depth);
  ir::SizeAttr wanted =
      combine(SizeOp::Min,
              combine(SizeOp::FloorDiv, size(schedule_.dotSplitBlocks), combine(SizeOp::Max, size(1), blocks)), most);
  ir::SizeAttr even = combine(SizeOp::CeilDiv, depth, combine(SizeOp::Max, size(1), wanted));
  split.step =
      combine(SizeOp::Max, size(kStep), combine(SizeOp::Mul, combine(SizeOp::CeilDiv, even, size(kStep)), size(kStep)));
  split.count = combine(SizeOp::CeilDiv, depth, split.step);
  SmallVector<ir::SizeAttr> extents{split.count};
  for (Axis axis : axes_.of(dot.getResult()))
    extents.push_back(axes_.extent(axis));
  extents.back() = alignedRow(extents.back());
  split.partials = arguments_.addTemporary(extents, accumulatorType(dot.getType()));
}

void Products::addBlocks(const Cluster& cluster, ir::DotOp dot, DepthSplit& split) {
  auto add = [&](const char* name, TensorSchedule schedule, ir::SizeAttr when) {
    Chunks sizes(context_, schedule, axes_, clusters_);
    split.blocks.push_back({name, when, sizes.choose(cluster), schedule});
  };
  SmallVector<Axis> axes = axes_.of(dot.getResult());
  if (ir::SizeAttr rows = axes_.extent(axes[axes.size() - 2]); rows && schedule_.thinDotRows > 0) {
    ir::SizeAttr isThin = combine(SizeOp::Less, rows, size(schedule_.thinDotRows + 1));
    std::optional<int64_t> known = ir::constantSize(isThin);
    if (known != 0)
      add("thin", thin(), known ? ir::SizeAttr() : isThin);
    if (known.value_or(0) != 0)
      return;
  }
  add("small", small(), {});
}

//===-- copies of operands ------------------------------------------------------------------------------------===//

/// Repeats whole tiles along a batch.
static bool repeatsBatch(Operation* op) {
  auto repeated = dyn_cast<ir::BroadcastOp>(op);
  auto type = repeated ? dyn_cast<RankedTensorType>(repeated.getValue().getType()) : RankedTensorType();
  return type && type.getRank() >= 2 && !llvm::is_contained(type.getShape(), 1);
}

/// The load at the other end of repetition along a batch and transposes, which widen narrow floats and round them again; null if there is none, two of its dimensions are
/// one axis, or it is not all of a tensor that callers give and the kernel only reads.
ir::TileLoadOp Products::copyableLoad(Value operand) {
  Type element = getElementTypeOrSelf(operand.getType());
  for (Operation* op = operand.getDefiningOp();
       op && (isa<ir::TransposeOp, arith::ExtFOp, arith::TruncFOp>(op) || repeatsBatch(op)) &&
       isa<RankedTensorType>(operand.getType());
       op = operand.getDefiningOp())
    operand = op->getOperand(0);
  auto load = operand.getDefiningOp<ir::TileLoadOp>();
  auto argument = load ? dyn_cast<BlockArgument>(load.getView()) : nullptr;
  if (!argument || !arguments_.isReadParam(argument.getArgNumber()) || clusters_.isRoot(load) || !load.getInbounds() ||
      getElementTypeOrSelf(operand.getType()) != element ||
      !llvm::all_of(load.getOffsets(), [](Value offset) { return getConstantIntValue(offset) == 0; }))
    return nullptr;
  SmallVector<Axis> axes = axes_.of(load.getResult());
  AxisSet different(axes.begin(), axes.end());
  bool isPlain = axes.size() >= 2 && different.size() == axes.size() &&
                 static_cast<size_t>(cast<ir::ViewType>(argument.getType()).getRank()) == axes.size() &&
                 element.getIntOrFloatBitWidth() * 4 <= schedule_.dotAlignment * 8;
  return isPlain && llvm::all_of(axes, [&](Axis axis) { return bool(axes_.extent(axis)); }) ? load : nullptr;
}

/// Not zero where all rows of a tensor start at multiples of dotAlignment bytes.
ir::SizeAttr Products::isAligned(unsigned argument) {
  const Placement placement = arguments_.placementOf(argument);
  auto isMultiple = [&](size::Expr bytes) {
    return size::make(SizeOp::Equal, size::make(SizeOp::Mod, bytes, schedule_.dotAlignment), 0);
  };
  size::Expr all = isMultiple(placement.address);
  for (size::Expr stride : ArrayRef(placement.strides).drop_back())
    all = size::make(SizeOp::And, all, isMultiple(size::make(SizeOp::Mul, stride, placement.elementBytes)));
  all = size::make(SizeOp::And, size::make(SizeOp::Equal, placement.strides.back(), 1), all);
  return ir::SizeAttr::get(context_, all);
}

ir::SizeAttr Products::elements(ir::TileLoadOp load) {
  ir::SizeAttr all = size(1);
  for (Axis axis : axes_.of(load.getResult()))
    all = combine(SizeOp::Mul, all, axes_.extent(axis));
  return all;
}

void Products::addCopies(const Cluster& cluster, ProductWays& ways) {
  ir::DotOp dot = schedule_.dotAlignment > 0 && cluster.kind == Cluster::Kind::Parallel ? findDot(cluster) : nullptr;
  if (!dot || !llvm::is_contained(cluster.roots, dot.getOperation()))
    return;
  ir::SizeAttr allAligned = size(1), tiny = size(1);
  for (Value operand : {dot.getA(), dot.getB()}) {
    ir::TileLoadOp load = copyableLoad(operand);
    if (!load || llvm::any_of(ways.copies, [&](const AlignedCopy& copy) { return copy.tile == load.getResult(); }))
      continue;
    SmallVector<ir::SizeAttr> extents;
    for (Axis axis : axes_.of(load.getResult()))
      extents.push_back(axes_.extent(axis));
    extents.back() = alignedRow(extents.back());
    unsigned original = cast<BlockArgument>(load.getView()).getArgNumber();
    AlignedCopy& copy = ways.copies.emplace_back(
        AlignedCopy{load.getResult(), {arguments_.addCopy(original, extents), {}}, isAligned(original)});
    allAligned = combine(SizeOp::And, allAligned, copy.isAligned);
    tiny = combine(SizeOp::And, tiny, combine(SizeOp::Less, elements(load), size(schedule_.dotCopyElements)));
  }
  if (!ways.copies.empty() && schedule_.dotCopyElements > 0)
    ways.isTiny = combine(SizeOp::And, tiny, ir::sizeUnary(SizeOp::Not, allAligned));
}

}  // namespace vortex::passes
