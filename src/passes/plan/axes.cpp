#include "passes/plan/axes.h"

#include "ir/tile_sizes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace vortex::passes {

using namespace mlir;

static unsigned rankOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? static_cast<unsigned>(type.getRank()) : 0;
}

void Axes::numberAll(ir::KernelOp kernel) {
  ir::TileSizes sizes;
  kernel.walk<WalkOrder::PreOrder>([&](Operation* op) {
    for (Value result : op->getResults())
      number(result, sizes);
    for (Region& region : op->getRegions())
      for (Block& block : region)
        for (Value argument : block.getArguments())
          number(argument, sizes);
  });
}

Axes::Axes(ir::KernelOp kernel, bool splitReshapes) : splitReshapes_(splitReshapes) {
  numberAll(kernel);
  kernel.walk([&](Operation* op) { tieOperation(op); });
  tieJoined(kernel);
}

/// What this would make the same dimension twice of a tile stays apart.
void Axes::tieJoined(ir::KernelOp kernel) {
  ir::TileStoreOp before;
  for (auto store : kernel.getBody().front().getOps<ir::TileStoreOp>()) {
    if (store->hasAttr(kJoinedAttribute) && before) {
      const auto parents = parent_;
      const auto extents = extents_;
      tieAll(before.getValue(), store.getValue());
      if (hasRepetition()) {
        parent_ = parents;
        extents_ = extents;
      }
    }
    before = store;
  }
}

bool Axes::hasRepetition() const {
  for (const auto& [value, own] : axes_) {
    AxisSet seen;
    for (Axis axis : own)
      if (!seen.insert(find(axis)).second)
        return true;
  }
  return false;
}

Operation* Axes::firstRepetition(ir::KernelOp kernel) {
  Axes numbered;
  numbered.numberAll(kernel);
  SmallVector<Operation*> ops;
  kernel.walk([&](Operation* op) { ops.push_back(op); });
  const auto hasRepetitionAfter = [&](size_t count) {
    Axes axes = numbered;
    for (Operation* op : ArrayRef(ops).take_front(count))
      axes.tieOperation(op);
    return axes.hasRepetition();
  };
  if (!hasRepetitionAfter(ops.size()))
    return nullptr;
  // What is tied stays tied.
  size_t without = 0, with = ops.size();
  while (with - without > 1) {
    const size_t middle = without + (with - without) / 2;
    (hasRepetitionAfter(middle) ? with : without) = middle;
  }
  return ops[with - 1];
}

void Axes::number(Value value, ir::TileSizes& sizes) {
  unsigned rank = rankOf(value);
  if (!rank)
    return;
  SmallVector<Axis> axes;
  for (OpFoldResult size : sizes.of(value)) {
    axes.push_back(static_cast<Axis>(parent_.size()));
    parent_.push_back(axes.back());
    extents_.push_back(sizeExpression(size));
  }
  axes_[value] = axes;
}

Axis Axes::find(Axis axis) const {
  while (parent_[axis] != axis)
    axis = parent_[axis] = parent_[parent_[axis]];
  return axis;
}

SmallVector<Axis> Axes::of(Value tile) const {
  SmallVector<Axis> result;
  auto found = axes_.find(tile);
  if (found != axes_.end())
    for (Axis axis : found->second)
      result.push_back(find(axis));
  return result;
}

ir::SizeAttr Axes::extent(Axis axis) const { return extents_[find(axis)]; }

void Axes::tie(Value a, unsigned dimA, Value b, unsigned dimB) {
  Axis first = find(axes_[a][dimA]), second = find(axes_[b][dimB]);
  if (first == second)
    return;
  parent_[second] = first;
  if (!extents_[first])
    extents_[first] = extents_[second];
}

void Axes::tieAll(Value a, Value b) {
  for (unsigned dim = 0, rank = std::min(rankOf(a), rankOf(b)); dim < rank; ++dim)
    tie(a, dim, b, dim);
}

/// True when the slice takes the whole dimension, so that both sides share an axis.
bool Axes::keepsDim(ir::SliceOp slice, unsigned dim) const {
  if (llvm::is_contained(slice.getDropped(), static_cast<int64_t>(dim)) ||
      getConstantIntValue(slice.getOffsets()[dim]) != 0)
    return false;
  unsigned resultDim = dim;
  for (int64_t dropped : slice.getDropped())
    resultDim -= dropped < static_cast<int64_t>(dim);
  ir::SizeAttr from = extents_[find(axes_.find(slice.getValue())->second[dim])];
  ir::SizeAttr to = extents_[find(axes_.find(slice.getResult())->second[resultDim])];
  return from && from == to;
}

/// Leading dimensions with equal extents on both sides.
unsigned Axes::reshapePrefix(ir::ReshapeOp reshape) const {
  const auto& from = axes_.find(reshape.getValue())->second;
  const auto& to = axes_.find(reshape.getResult())->second;
  unsigned prefix = 0;
  while (prefix < from.size() && prefix < to.size()) {
    ir::SizeAttr a = extents_[find(from[prefix])], b = extents_[find(to[prefix])];
    if (!a || a != b)
      break;
    ++prefix;
  }
  return prefix;
}

/// Trailing dimensions with equal extents on both sides, after the leading ones.
unsigned Axes::reshapeSuffix(ir::ReshapeOp reshape, unsigned prefix) const {
  const auto& from = axes_.find(reshape.getValue())->second;
  const auto& to = axes_.find(reshape.getResult())->second;
  unsigned suffix = 0;
  while (prefix + suffix < std::min(from.size(), to.size())) {
    ir::SizeAttr a = extents_[find(from[from.size() - 1 - suffix])], b = extents_[find(to[to.size() - 1 - suffix])];
    if (!a || a != b)
      break;
    ++suffix;
  }
  return suffix;
}

bool Axes::flattens(Operation* op) const {
  auto reshape = dyn_cast_if_present<ir::ReshapeOp>(op);
  if (!reshape || splitReshapes_ || op->hasAttr(kApartAttribute) || !isa<ir::KernelOp>(op->getParentOp()) ||
      rankOf(reshape.getResult()) != 1 || rankOf(reshape.getValue()) < 2)
    return false;
  return reshapePrefix(reshape) == 0 && reshapeSuffix(reshape, 0) == 0 && extent(of(reshape.getResult())[0]) &&
         llvm::all_of(of(reshape.getValue()), [&](Axis axis) { return bool(extent(axis)); });
}

bool Axes::regroups(ir::ReshapeOp op) const {
  return !op->hasAttr(kApartAttribute) && rankOf(op.getValue()) > 1 && rankOf(op.getResult()) > 1 &&
         reshapePrefix(op) == 0 && reshapeSuffix(op, 0) == 0;
}

Value Axes::beforeFlattening(Value tile) const {
  Operation* op = tile.getDefiningOp();
  bool isByPiece = op && op->hasAttr(kByPieceAttribute);
  return isByPiece || flattens(op) ? cast<ir::ReshapeOp>(op).getValue() : tile;
}

void Axes::tieOperation(Operation* op) {
  if (op->hasAttr(kApartAttribute))
    return;
  if (op->getNumRegions() != 0)
    return tieRegions(op);
  if (ir::isElementwise(op)) {
    for (Value operand : op->getOperands())
      if (rankOf(operand))
        tieAll(op->getResult(0), operand);
    return;
  }
  if (auto broadcast = dyn_cast<ir::BroadcastOp>(op)) {
    auto resultType = cast<RankedTensorType>(broadcast.getType());
    auto type = dyn_cast<RankedTensorType>(broadcast.getValue().getType());
    for (auto [dim, target] : llvm::enumerate(broadcast.getDims()))
      if (type.getDimSize(static_cast<unsigned>(dim)) != 1 || resultType.getDimSize(static_cast<unsigned>(target)) == 1)
        tie(broadcast.getResult(), static_cast<unsigned>(target), broadcast.getValue(), static_cast<unsigned>(dim));
  } else if (auto transpose = dyn_cast<ir::TransposeOp>(op)) {
    for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
      tie(transpose.getResult(), static_cast<unsigned>(dim), transpose.getValue(), static_cast<unsigned>(source));
  } else if (auto reduce = dyn_cast<ir::ReduceOp>(op)) {
    for (unsigned dim = 0, kept = 0, rank = rankOf(reduce.getValue()); dim < rank; ++dim)
      if (!llvm::is_contained(reduce.getDims(), static_cast<int64_t>(dim)))
        tie(reduce.getResult(), kept++, reduce.getValue(), dim);
  } else if (auto scan = dyn_cast<ir::ScanOp>(op)) {
    tieAll(scan.getResult(), scan.getValue());
  } else if (auto dot = dyn_cast<ir::DotOp>(op)) {
    unsigned rank = rankOf(dot.getResult());
    tieAll(dot.getResult(), dot.getAcc());
    for (unsigned dim = 0; dim + 2 < rank; ++dim) {
      tie(dot.getResult(), dim, dot.getA(), dim);
      tie(dot.getResult(), dim, dot.getB(), dim);
    }
    tie(dot.getResult(), rank - 2, dot.getA(), rank - 2);
    tie(dot.getResult(), rank - 1, dot.getB(), rank - 1);
    tie(dot.getA(), rank - 1, dot.getB(), rank - 2);
  } else if (auto slice = dyn_cast<ir::SliceOp>(op)) {
    for (unsigned dim = 0, kept = 0, rank = rankOf(slice.getValue()); dim < rank; ++dim) {
      if (llvm::is_contained(slice.getDropped(), static_cast<int64_t>(dim)))
        continue;
      if (keepsDim(slice, dim))
        tie(slice.getResult(), kept, slice.getValue(), dim);
      ++kept;
    }
  } else if (auto reshape = dyn_cast<ir::ReshapeOp>(op)) {
    unsigned prefix = reshapePrefix(reshape), suffix = reshapeSuffix(reshape, prefix);
    unsigned from = rankOf(reshape.getValue()), to = rankOf(reshape.getResult());
    for (unsigned dim = 0; dim < prefix; ++dim)
      tie(reshape.getResult(), dim, reshape.getValue(), dim);
    for (unsigned dim = 1; dim <= suffix; ++dim)
      tie(reshape.getResult(), to - dim, reshape.getValue(), from - dim);
  }
}

void Axes::tieRegions(Operation* op) {
  auto tieYield = [&](Region& region, unsigned skip) {
    if (region.empty())
      return;
    for (auto [index, operand] : llvm::enumerate(region.front().getTerminator()->getOperands().drop_front(skip)))
      if (index < op->getNumResults())
        tieAll(op->getResult(static_cast<unsigned>(index)), operand);
  };
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [index, argument] : llvm::enumerate(loop.getRegionIterArgs())) {
      tieAll(argument, loop.getInitArgs()[index]);
      tieAll(loop.getResult(static_cast<unsigned>(index)), argument);
    }
    tieYield(loop.getRegion(), 0);
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    tieYield(branch.getThenRegion(), 0);
    tieYield(branch.getElseRegion(), 0);
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [index, argument] : llvm::enumerate(loop.getBeforeArguments())) {
      tieAll(argument, loop.getInits()[index]);
      tieAll(argument, loop.getYieldOp().getOperand(static_cast<unsigned>(index)));
    }
    for (auto [index, argument] : llvm::enumerate(loop.getAfterArguments()))
      tieAll(loop.getResult(static_cast<unsigned>(index)), argument);
    tieYield(loop.getBefore(), 1);
  }
}

AxisSet Axes::wholeAxes(Operation* op) const {
  AxisSet whole;
  op->walk([&](Operation* inner) { addWhole(inner, whole); });
  return whole;
}

void Axes::addWhole(Operation* op, AxisSet& whole) const {
  if (op->hasAttr(kApartAttribute))
    return;
  // A tile with one axis twice (x @ transpose(x)): a block with a piece of that axis would see the diagonal only.
  auto addRepeated = [&](Value value) {
    AxisSet seen;
    for (Axis axis : of(value))
      if (!seen.insert(axis).second)
        whole.insert(axis);
  };
  llvm::for_each(op->getOperands(), addRepeated);
  llvm::for_each(op->getResults(), addRepeated);
  auto addDim = [&](Value value, unsigned dim) { whole.insert(of(value)[dim]); };
  auto addFrom = [&](Value value, unsigned first) {
    for (unsigned dim = first, rank = rankOf(value); dim < rank; ++dim)
      addDim(value, dim);
  };
  if (auto reduce = dyn_cast<ir::ReduceOp>(op)) {
    for (int64_t dim : reduce.getDims())
      addDim(reduce.getValue(), static_cast<unsigned>(dim));
  } else if (auto scan = dyn_cast<ir::ScanOp>(op)) {
    addDim(scan.getValue(), static_cast<unsigned>(scan.getDim()));
  } else if (auto dot = dyn_cast<ir::DotOp>(op)) {
    addDim(dot.getA(), rankOf(dot.getA()) - 1);
  } else if (auto element = dyn_cast<ir::ElementOp>(op)) {
    addFrom(element.getValue(), 0);
  } else if (auto slice = dyn_cast<ir::SliceOp>(op)) {
    for (unsigned dim = 0, rank = rankOf(slice.getValue()); dim < rank; ++dim)
      if (!keepsDim(slice, dim))
        addDim(slice.getValue(), dim);
  } else if (auto reshape = dyn_cast<ir::ReshapeOp>(op)) {
    if (flattens(op) || op->hasAttr(kByPieceAttribute))
      return;
    unsigned prefix = reshapePrefix(reshape), suffix = reshapeSuffix(reshape, prefix);
    unsigned from = rankOf(reshape.getValue()) - suffix, to = rankOf(reshape.getResult()) - suffix;
    for (unsigned dim = prefix; dim < from; ++dim)
      addDim(reshape.getValue(), dim);
    // Without regrouped dimensions in its source, or with the innermost one as it was, neighbours stay neighbours.
    if (!splitReshapes_ && suffix == 0 && from > prefix + 1)
      for (unsigned dim = prefix; dim < to; ++dim)
        addDim(reshape.getResult(), dim);
  }
}

}  // namespace vortex::passes
