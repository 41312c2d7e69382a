#include "passes/products.h"

#include "passes/phase_builder.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

ProductWays Products::plan(const Cluster& cluster, ir::SizeAttr workers) {
  ProductWays ways;
  addBulk(cluster, workers, ways);
  addSplits(cluster, ways);
  addCopies(cluster, ways);
  return ways;
}

void Products::addBulk(const Cluster& cluster, ir::SizeAttr workers, ProductWays& ways) {
  ir::DotOp dot = schedule_.bulkTiles.empty() ? nullptr : splittable(cluster);
  if (dot)
    ways.bulk = bulk_.plan(cluster, dot, workers);
  if (!ways.bulk)
    return;
  ir::SizeAttr isBetter = combine(SizeOp::Or, ways.bulk->isFull, ir::sizeUnary(SizeOp::Not, paysToSplit(cluster, dot)));
  ways.bulkWhen = combine(SizeOp::And, ways.bulk->pays, isBetter);
}

//===-- sizes of blocks ---------------------------------------------------------------------------------------===//

ir::SizeAttr Products::isSmall(ir::SizeAttr blocks) {
  if (schedule_.smallDotRows == 0)
    return {};
  return combine(SizeOp::Less, blocks, size(schedule_.smallDotBelow));
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

ir::SizeAttr Products::smallBlocks(const Cluster& cluster) {
  TensorSchedule schedule = small();
  Chunks sizes(context_, schedule, axes_, clusters_);
  return sizes.blockCount(cluster, sizes.choose(cluster));
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
  if (schedule_.dotSplitBlocks == 0)
    return size(0);
  ir::SizeAttr depth = axes_.extent(axes_.of(dot.getA()).back());
  // A quarter of the blocks wanted, or less: the second phase costs more than a few idle cores. So few are few in blocks of any size.
  return combine(SizeOp::And, combine(SizeOp::Less, smallBlocks(cluster), size(fewBlocks())),
                 combine(SizeOp::Less, size(2 * schedule_.dotSplitDepth - 1), depth));
}

void Products::addSplits(const Cluster& cluster, ProductWays& ways) {
  ir::DotOp dot = splittable(cluster);
  if (!dot)
    return;
  ir::SizeAttr when = paysToSplit(cluster, dot);
  auto add = [&](const char* name, TensorSchedule schedule, ir::SizeAttr condition) {
    if (ir::constantSize(condition) == 0)
      return;
    DepthSplit& added = ways.splits.emplace_back(split(cluster, dot, std::move(schedule)));
    added.name = name;
    added.when = condition;
  };
  SmallVector<Axis> axes = axes_.of(dot.getResult());
  if (ir::SizeAttr rows = axes_.extent(axes[axes.size() - 2]); rows && schedule_.thinDotRows > 0) {
    ir::SizeAttr isThin = combine(SizeOp::Less, rows, size(schedule_.thinDotRows + 1));
    add("thin", thin(), combine(SizeOp::And, when, isThin));
    if (ir::constantSize(isThin).value_or(0) != 0)
      return;
  }
  add("split", small(), when);
}

DepthSplit Products::split(const Cluster& cluster, ir::DotOp dot, TensorSchedule schedule) {
  constexpr int64_t kStep = 128;  // pieces start at aligned elements
  DepthSplit result;
  result.depth = axes_.of(dot.getA()).back();
  result.schedule = std::move(schedule);
  Chunks sizes(context_, result.schedule, axes_, clusters_);
  result.pieces = sizes.choose(cluster);
  ir::SizeAttr blocks = combine(SizeOp::Max, size(1), sizes.blockCount(cluster, result.pieces));
  ir::SizeAttr depth = axes_.extent(result.depth);
  ir::SizeAttr wanted = combine(SizeOp::Min, combine(SizeOp::FloorDiv, size(schedule_.dotSplitBlocks), blocks),
                                combine(SizeOp::FloorDiv, depth, size(schedule_.dotSplitDepth)));
  ir::SizeAttr even = combine(SizeOp::CeilDiv, depth, combine(SizeOp::Max, size(1), wanted));
  result.step =
      combine(SizeOp::Max, size(kStep), combine(SizeOp::Mul, combine(SizeOp::CeilDiv, even, size(kStep)), size(kStep)));
  result.count = combine(SizeOp::CeilDiv, depth, result.step);
  SmallVector<ir::SizeAttr> extents{result.count};
  for (Axis axis : axes_.of(dot.getResult()))
    extents.push_back(axes_.extent(axis));
  result.partials = arguments_.addTemporary(extents, accumulatorType(dot.getType()));
  return result;
}

//===-- copies of operands ------------------------------------------------------------------------------------===//

/// The load at the other end of transposes, which widen narrow floats and round them again; null if there is none, two of its dimensions are
/// one axis, or a phase of its own makes it.
ir::TileLoadOp Products::copyableLoad(Value operand) {
  Type element = getElementTypeOrSelf(operand.getType());
  for (Operation* op = operand.getDefiningOp();
       isa_and_nonnull<ir::TransposeOp, arith::ExtFOp, arith::TruncFOp>(op) && isa<RankedTensorType>(operand.getType());
       op = operand.getDefiningOp())
    operand = op->getOperand(0);
  auto load = operand.getDefiningOp<ir::TileLoadOp>();
  if (!load || clusters_.isRoot(load) || getElementTypeOrSelf(operand.getType()) != element)
    return nullptr;
  SmallVector<Axis> axes = axes_.of(load.getResult());
  AxisSet different(axes.begin(), axes.end());
  bool isPlain = axes.size() >= 2 && different.size() == axes.size();
  return isPlain && llvm::all_of(axes, [&](Axis axis) { return bool(axes_.extent(axis)); }) ? load : nullptr;
}

/// Not zero where rows of the load's extents are no multiples of dotAlignment bytes; null: elements are too wide for that to matter.
ir::SizeAttr Products::isMisaligned(ir::TileLoadOp load) {
  auto type = cast<RankedTensorType>(load.getResult().getType());
  int64_t bits = type.getElementTypeBitWidth();
  if (bits * 4 > schedule_.dotAlignment * 8)
    return {};
  ir::SizeAttr row = axes_.extent(axes_.of(load.getResult()).back());
  ir::SizeAttr rest = combine(SizeOp::Mod, row, size(schedule_.dotAlignment * 8 / bits));
  return combine(SizeOp::Less, size(0), rest);
}

void Products::addCopies(const Cluster& cluster, ProductWays& ways) {
  constexpr int64_t kRow = 64;  // elements that rows of copies are a multiple of
  ir::DotOp dot = schedule_.dotAlignment > 0 && cluster.kind == Cluster::Kind::Parallel ? findDot(cluster) : nullptr;
  if (!dot || !llvm::is_contained(cluster.roots, dot.getOperation()))
    return;
  ir::SizeAttr anyRow = size(0);
  SmallVector<ir::TileLoadOp> loads;
  for (Value operand : {dot.getA(), dot.getB()}) {
    ir::TileLoadOp load = copyableLoad(operand);
    ir::SizeAttr misaligned = load && !llvm::is_contained(loads, load) ? isMisaligned(load) : ir::SizeAttr();
    if (!misaligned || ir::constantSize(misaligned) == 0)
      continue;
    anyRow = combine(SizeOp::Or, anyRow, misaligned);
    loads.push_back(load);
  }
  SmallVector<Axis> axes = axes_.of(dot.getResult());
  ir::SizeAttr rows = axes_.extent(axes[axes.size() - 2]), columns = axes_.extent(axes.back());
  if (loads.empty() || !rows || !columns)
    return;
  AlignedCopies copies;
  ir::SizeAttr isLarge = combine(SizeOp::Less, size(schedule_.dotCopySide - 1), combine(SizeOp::Min, rows, columns));
  copies.when = combine(SizeOp::And, isLarge, anyRow);
  if (!ways.splits.empty())  // so few blocks do not pay for copies
    copies.when = combine(SizeOp::And, copies.when, combine(SizeOp::Less, size(fewBlocks() - 1), smallBlocks(cluster)));
  if (ir::constantSize(copies.when) == 0)
    return;
  for (ir::TileLoadOp load : loads) {
    SmallVector<ir::SizeAttr> extents;
    for (Axis axis : axes_.of(load.getResult()))
      extents.push_back(axes_.extent(axis));
    extents.back() = combine(SizeOp::Mul, combine(SizeOp::CeilDiv, extents.back(), size(kRow)), size(kRow));
    copies.loads.push_back({load, arguments_.addTemporary(extents, getElementTypeOrSelf(load.getResult().getType()))});
  }
  ways.copies = std::move(copies);
}

}  // namespace vortex::passes
