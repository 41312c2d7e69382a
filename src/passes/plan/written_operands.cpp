// A block that computes an operand does so element by element on the way to its stages, for every block of rows (columns) again, and its product
// cannot go in bulk. Written once, an element costs its bytes.
#include "passes/plan/written_operands.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

int64_t WrittenOperands::elementBytes(Value tile) const {
  return static_cast<int64_t>(llvm::divideCeil(cast<RankedTensorType>(tile.getType()).getElementTypeBitWidth(), 8));
}

bool WrittenOperands::isComputed(Value tile) const {
  const auto isMoved = [](Operation* op) { return isa_and_nonnull<ir::TransposeOp, ir::BroadcastOp, ir::SliceOp>(op); };
  while (!temporaries_.contains(tile) && isMoved(tile.getDefiningOp()))
    tile = tile.getDefiningOp()->getOperand(0);
  Operation* op = tile.getDefiningOp();
  return !temporaries_.contains(tile) && op && isTile(tile) && (ir::isElementwise(op) || isa<ir::ReshapeOp>(op));
}

bool WrittenOperands::addLoaded(ir::TileLoadOp load, unsigned depth, bool isA) {
  return load.getInbounds() && !clusters_.isRoot(load) &&
         add({.tile = load.getResult(), .depth = depth, .isA = isA}, true);
}

bool WrittenOperands::addComputed(Value tile, unsigned depth, bool isA, bool isTurned) {
  WrittenOperand operand{.tile = tile, .depth = depth, .isA = isA};
  return findWork(operand) && add(std::move(operand), isTurned);
}

/// Counts what an element takes. False: it is more than elementwise, or blocks could not have pieces of the tile.
bool WrittenOperands::findWork(WrittenOperand& operand) const {
  const SmallVector<Axis> own = axes_.of(operand.tile);
  llvm::DenseSet<Value> seen;
  SmallVector<Value> pending{operand.tile};
  while (!pending.empty()) {
    const Value tile = pending.pop_back_val();
    if (!isTile(tile) || !seen.insert(tile).second)
      continue;
    Operation* op = tile.getDefiningOp();
    const bool isTemporary = temporaries_.contains(tile);
    if (isTemporary || isa_and_nonnull<ir::TileLoadOp>(op)) {
      if (!isTemporary && clusters_.isRoot(op))
        return false;
      if (axes_.of(tile).size() >= own.size())  // others are read again and again
        operand.sourceBytes += elementBytes(tile);
      continue;
    }
    const bool isPlain =
        op && op->getNumRegions() == 0 && !clusters_.isRoot(op) &&
        (ir::isElementwise(op) ||
         isa<ir::BroadcastOp, ir::TransposeOp, ir::SliceOp, ir::ReshapeOp, ir::IotaOp, arith::ConstantOp>(op));
    if (!isPlain)
      return false;
    const AxisSet whole = axes_.wholeAxes(op);
    if (!op->hasAttr(kApartAttribute) && llvm::any_of(own, [&](Axis axis) { return whole.contains(axis); }))
      return false;
    operand.operations += ir::isElementwise(op);
    llvm::append_range(pending, op->getOperands());
  }
  return true;
}

bool WrittenOperands::add(WrittenOperand operand, bool isTurned) {
  const SmallVector<Axis> axes = axes_.of(operand.tile);
  const AxisSet different(axes.begin(), axes.end());
  const bool hasPieces = different.size() == axes.size() && llvm::all_of(axes, [&](Axis axis) {
                           return axes_.extent(axis) && !arguments_.variesFromRoundToRound(axes_.extent(axis));
                         });
  const bool isKnown = llvm::any_of(all_, [&](const WrittenOperand& other) { return other.tile == operand.tile; });
  if (!hasPieces || isKnown || (isTurned && schedule_.squareSide == 0))
    return false;
  if (isTurned) {
    llvm::append_range(operand.copy.permutation, llvm::seq<int64_t>(0, static_cast<int64_t>(axes.size())));
    std::swap(operand.copy.permutation[operand.depth], operand.copy.permutation.back());
  }
  all_.push_back(std::move(operand));
  return true;
}

void WrittenOperands::addTemporaries() {
  constexpr int64_t kRowBytes = 128;
  for (WrittenOperand& operand : all_) {
    SmallVector<ir::SizeAttr> extents;
    for (Axis axis : axes_.of(operand.tile))
      extents.push_back(axes_.extent(axis));
    if (operand.isTurned())
      std::swap(extents[operand.depth], extents.back());
    operand.copy.argument = arguments_.addAlignedTemporary(extents, getElementTypeOrSelf(operand.tile.getType()),
                                                           kRowBytes / elementBytes(operand.tile));
  }
}

ir::SizeAttr WrittenOperands::pay(const Cluster& cluster, ir::DotOp dot, ir::SizeAttr workers) const {
  // Against mma.sync, where operands may lie anyhow: 128×4096×4096 takes 71 µs instead of 77 in tf32, 18 instead of 20 in i8, 19 instead of 34 in f8, on an
  // H200.
  constexpr int64_t kTimes = 128;
  const TensorSchedule::OperandCosts& costs = schedule_.operandCosts;
  const auto size = [&](int64_t value) { return ir::sizeConstant(dot.getContext(), value); };
  const auto combine = [](SizeOp op, ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(op, a, b); };
  const SmallVector<Axis> axes = axes_.of(dot.getResult());
  TensorSchedule inPlace = schedule_;
  if (schedule_.smallDotRows > 0) {
    inPlace.dotRows = inPlace.dotRowStep = schedule_.smallDotRows;
    inPlace.dotColumns = schedule_.smallDotColumns;
  }
  Chunks sizes(dot.getContext(), inPlace, axes_, clusters_);
  const ir::SizeAttr blocks = sizes.blockCount(cluster, sizes.choose(cluster));
  const ir::SizeAttr steps =
      combine(SizeOp::Mul, combine(SizeOp::CeilDiv, blocks, workers), axes_.extent(axes_.of(dot.getA()).back()));
  ir::SizeAttr isOften = size(1), inBlocks = size(0), once = size(0);
  for (const WrittenOperand& operand : all_) {
    if (operand.operations == 0) {
      ir::SizeAttr times = axes_.extent(operand.isA ? axes.back() : axes[axes.size() - 2]);
      isOften = combine(SizeOp::And, isOften, combine(SizeOp::Less, size(kTimes - 1), times));
      continue;
    }
    const int64_t elements = operand.isA ? inPlace.dotRows : inPlace.dotColumns;  // of a step of the depth
    const int64_t slots = elements * (costs.elementSlots + operand.operations);
    inBlocks = combine(SizeOp::Add, inBlocks,
                       combine(SizeOp::FloorDiv, combine(SizeOp::Mul, steps, size(slots)), size(costs.slotsPerCycle)));
    ir::SizeAttr bytes = size(operand.sourceBytes + elementBytes(operand.tile));
    for (Axis axis : axes_.of(operand.tile))
      bytes = combine(SizeOp::Mul, bytes, axes_.extent(axis));
    once = combine(
        SizeOp::Add, once,
        combine(SizeOp::Add, size(costs.launchCycles), combine(SizeOp::FloorDiv, bytes, size(costs.bytesPerCycle))));
  }
  const bool areComputed = llvm::any_of(all_, [](const WrittenOperand& operand) { return operand.operations > 0; });
  return areComputed ? combine(SizeOp::And, isOften, combine(SizeOp::Less, once, inBlocks)) : isOften;
}

}  // namespace vortex::passes
