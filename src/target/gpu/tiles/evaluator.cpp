#include "target/gpu/tiles/evaluator.h"

#include "analysis/element_control.h"
#include "ir/guarded_slice.h"
#include "ir/index_cast.h"
#include "ir/index_range.h"
#include "ir/reshape_parts.h"
#include "ir/tile_sizes.h"
#include "target/gpu/tiles/reduction.h"
#include "target/interface/elementwise.h"

#include <llvm/ADT/TypeSwitch.h>
#include <llvm/Support/SaveAndRestore.h>
#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::target::gpu::tiles {

namespace arith = mlir::arith;

//===-- memory ------------------------------------------------------------------------------------------------===//

const Place* Evaluator::place(mlir::Value tile) const {
  for (const auto& scope : llvm::reverse(places_))
    if (auto found = scope.find(tile); found != scope.end())
      return &found->second;
  return nullptr;
}

static Place placeInView(Lowering& l, mlir::Value view, mlir::ValueRange offsets, bool inbounds) {
  Place place;
  place.view = l.view(view);
  for (mlir::Value offset : offsets)
    place.offsets.push_back(l.scalar(offset));
  place.guarded = !inbounds;
  place.startsInside = inbounds || llvm::all_of(offsets, ir::isNotNegative);
  place.base = rootView(view).getAsOpaquePointer();
  place.window = view.getAsOpaquePointer();
  return place;
}

Place Evaluator::placeOfLoad(ir::TileLoadOp op) {
  Place place = placeInView(l, op.getView(), op.getOffsets(), op.getInbounds());
  place.key = op.getAsOpaquePointer();
  if (op.getOther())
    place.other = l.scalar(op.getOther());
  return place;
}

Place Evaluator::placeOfStore(ir::TileStoreOp op) {
  Place place = placeInView(l, op.getView(), op.getOffsets(), op.getInbounds());
  place.key = op.getAsOpaquePointer();
  return place;
}

Values Evaluator::extents(mlir::Value tile) {
  if (const Place* known = place(tile); known && known->offsets.empty() && !known->view.extents.empty())
    return Values(known->view.extents);
  Values result;
  auto type = llvm::cast<mlir::RankedTensorType>(tile.getType());
  for (auto [dim, size] : llvm::enumerate(ir::tileSizes(tile))) {
    if (!type.isDynamicDim(static_cast<unsigned>(dim))) {
      result.push_back(l.constant(type.getDimSize(static_cast<unsigned>(dim))));
    } else if (auto attribute = llvm::dyn_cast_if_present<mlir::Attribute>(size)) {
      result.push_back(l.constant(llvm::cast<mlir::IntegerAttr>(attribute).getInt()));
    } else if (auto value = llvm::dyn_cast_if_present<mlir::Value>(size)) {
      result.push_back(l.scalar(value));
    } else {
      Value extent;
      if (mlir::Operation* op = tile.getDefiningOp(); op && ir::isElementwise(op))
        for (mlir::Value operand : op->getOperands())
          if (!extent && isTile(operand))
            extent = extents(operand)[dim];
      if (!extent) {
        l.fail(tile.getDefiningOp() ? tile.getDefiningOp() : tile.getParentBlock()->getParentOp(),
               "a tile of unknown extent");
        extent = l.constant(0);
      }
      result.push_back(extent);
    }
  }
  return result;
}

//===-- elements ----------------------------------------------------------------------------------------------===//

Value Evaluator::find(mlir::Value tile, const At& at) const {
  for (const auto& frame : llvm::reverse(frames_))
    if (auto found = frame.find(tile); found != frame.end())
      for (const auto& [known, value] : found->second)
        if (known.equals(l, at))
          return value;
  return {};
}

llvm::SmallVector<Evaluator::Known> Evaluator::knownInFrame() const {
  llvm::SmallVector<Known> all;
  for (const auto& [tile, positions] : frames_.back())
    for (const auto& [at, value] : positions)
      all.push_back({tile, at, value});
  return all;
}

Value Evaluator::eval(mlir::Value tile, const At& at) {
  if (at.lanes > 1 && at.isUniform())
    return splat(l, eval(tile, At{at.index, 1, at.mask}), at.lanes);
  if (Value known = find(tile, at))
    return known;
  Value value = compute(tile, at);
  remember(tile, at, value);
  return value;
}

void Evaluator::touch(mlir::Value tile, const At& at) {
  Touched touched;
  touch(tile, at, touched);
}

/// Squares of squares are reached on as many ways as there are powers: each position of a tile once.
void Evaluator::touch(mlir::Value tile, const At& at, Touched& touched) {
  if (at.lanes > 1 && at.isUniform())
    return touch(tile, At{at.index, 1, at.mask}, touched);
  llvm::SmallVector<At, 1>& before = touched[tile];
  if (find(tile, at) || llvm::any_of(before, [&](const At& known) { return known.equals(l, at); }))
    return;
  before.push_back(at);
  if (place(tile) || tile.getDefiningOp<ir::TileLoadOp>()) {
    eval(tile, at);
    return;
  }
  if (auto operands = operandsAt(tile, at))
    for (auto& [operand, from] : *operands)
      touch(operand, from, touched);
}

void Evaluator::primeInvariants(mlir::Value tile, const DimMap& map, llvm::ArrayRef<std::optional<Index>> loops,
                                const At& at, IsLeaf isLeaf, IsLeaf changes) {
  Closure closure;
  closure.walk(tile, map, [&](mlir::Value inner, const DimMap& use) {
    if (isLeaf(inner))
      return false;
    mlir::Operation* op = inner.getDefiningOp();
    const bool isBelow = !place(inner);
    if (llvm::isa_and_present<ir::BroadcastOp, ir::SliceOp, arith::ConstantOp>(op) || changes(inner))
      return isBelow;
    At here{{}, at.lanes, at.mask};
    auto type = llvm::cast<mlir::RankedTensorType>(inner.getType());
    for (auto [dim, from] : llvm::enumerate(use)) {
      const size_t loop = from.exact && from.loop >= 0 ? static_cast<size_t>(from.loop) : loops.size();
      if (loop < loops.size() && loops[loop])
        here.index.push_back(*loops[loop]);
      else if (from.loop == DimUse::kFixed && type.getDimSize(static_cast<unsigned>(dim)) == 1)
        here.index.push_back({l.constant(0), 0});
      else
        return isBelow;
    }
    eval(inner, here);
    return false;
  });
}

Value Evaluator::lanesApart(mlir::Value, const At& at, llvm::function_ref<Value(const At&)> one) {
  Values lanes;
  for (unsigned lane = 0; lane < at.lanes; ++lane)
    lanes.push_back(one(at.lane(l, lane)));
  return gather(l, lanes);
}

At Evaluator::sourceOfSlice(ir::SliceOp op, const At& at) {
  At from{{}, at.lanes, at.mask};
  unsigned kept = 0;
  for (auto [dim, offset] : llvm::enumerate(op.getOffsets())) {
    bool dropped = llvm::is_contained(op.getDropped(), static_cast<int64_t>(dim));
    if (dropped) {
      from.index.push_back({l.scalar(offset), 0});
      continue;
    }
    Index index = at.index[kept++];
    if (mlir::getConstantIntValue(offset) != 0) {
      Value shift = l.scalar(offset);
      if (index.step != 0 && wide)
        wide->multiple(shift, at.lanes);
      index.base = l.add(index.base, shift);
    }
    from.index.push_back(index);
  }
  return from;
}

std::optional<llvm::SmallVector<std::pair<mlir::Value, At>, 3>> Evaluator::operandsAt(mlir::Value tile, const At& at) {
  llvm::SmallVector<std::pair<mlir::Value, At>, 3> result;
  mlir::Operation* op = tile.getDefiningOp();
  if (!op || (op->getNumRegions() != 0 && !isPerElement(tile)))
    return std::nullopt;
  if (auto loop = llvm::dyn_cast<mlir::scf::ForOp>(op)) {
    analysis::forEachOuterTile(loop, [&](mlir::Value outer) { result.push_back({outer, at}); });
  } else if (op->getNumRegions() != 0) {
    return std::nullopt;  // what a branch reads is read in it
  } else if (auto broadcast = llvm::dyn_cast<ir::BroadcastOp>(op)) {
    mlir::Value source = broadcast.getValue();
    if (!isTile(source))
      return result;
    auto type = llvm::cast<mlir::RankedTensorType>(source.getType());
    At from{{}, at.lanes, at.mask};
    for (auto [dim, target] : llvm::enumerate(broadcast.getDims())) {
      bool stretched = type.getDimSize(static_cast<unsigned>(dim)) == 1;
      from.index.push_back(stretched ? Index{l.constant(0), 0} : at.index[target]);
    }
    result.push_back({source, from});
  } else if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(op)) {
    At from{at.index, at.lanes, at.mask};
    for (auto [dim, source] : llvm::enumerate(transpose.getPermutation()))
      from.index[source] = at.index[dim];
    result.push_back({transpose.getValue(), from});
  } else if (auto slice = llvm::dyn_cast<ir::SliceOp>(op)) {
    if (!ir::guardedDims(slice).empty())
      return std::nullopt;
    result.push_back({slice.getValue(), sourceOfSlice(slice, at)});
  } else if (auto reshape = llvm::dyn_cast<ir::ReshapeOp>(op)) {
    auto from = sourceOfReshape(reshape, at);
    if (!from)
      return std::nullopt;
    result.push_back({reshape.getValue(), *from});
  } else if (ir::isElementwise(op)) {
    for (mlir::Value operand : op->getOperands())
      if (isTile(operand))
        result.push_back({operand, at});
  } else {
    return std::nullopt;
  }
  return result;
}

Value Evaluator::load(const Place& place, const At& at) {
  Value condition = exists_;
  if (writers.writes && writers.bases.contains(place.base))
    condition = l.both(condition, writers.writes);
  if (!condition)
    return loadElements(l, place, at, wide);
  At own = at;
  own.mask = l.both(at.condition(), condition);
  for (Index& index : own.index)
    index.masked = true;
  return loadElements(l, place, own, wide);
}

Value Evaluator::compute(mlir::Value tile, const At& at) {
  const Place* known = place(tile);
  if (auto found = others_.find(tile); known && isOfOthers_ && found != others_.end())
    known = found->second ? &*found->second : nullptr;
  if (known)
    return load(*known, at);
  mlir::Operation* op = tile.getDefiningOp();
  auto failed = [&](const char* what) -> Value {
    l.fail(op ? op : tile.getParentBlock()->getParentOp(), what);
    return l.zero(valueType(elementType(tile), at.lanes));
  };
  if (!op)
    return failed("this tile");
  return llvm::TypeSwitch<mlir::Operation*, Value>(op)
      .Case([&](ir::TileLoadOp load) { return this->load(placeOfLoad(load), at); })
      .Case<mlir::scf::ForOp, mlir::scf::IfOp, mlir::scf::WhileOp>(
          [&](auto) { return evalControl(llvm::cast<mlir::OpResult>(tile), at); })
      .Case([&](ir::IotaOp iota) { return evalIota(iota, at); })
      .Case([&](ir::ReduceOp reduce) { return evalReduce(reduce, at); })
      .Case([&](arith::ConstantOp constant) { return evalConstant(constant, at); })
      .Case([&](ir::BroadcastOp broadcast) -> Value {
        if (!isTile(broadcast.getValue()))
          return splat(l, l.scalar(broadcast.getValue()), at.lanes);
        auto [source, from] = (*operandsAt(tile, at))[0];
        return eval(source, from);
      })
      .Case([&](ir::SliceOp slice) { return evalSlice(slice, at); })
      .Case<ir::TransposeOp, ir::ReshapeOp>([&](auto) -> Value {
        if (auto operands = operandsAt(tile, at))
          return eval((*operands)[0].first, (*operands)[0].second);
        return lanesApart(tile, at, [&](const At& one) { return eval(tile, one); });
      })
      .Default([&](mlir::Operation*) -> Value {
        return ir::isElementwise(op) ? evalElementwise(op, at) : failed("this tile operation here");
      });
}

/// Outside: 0. What is found there belongs to nobody else, as nothing was read.
Value Evaluator::evalSlice(ir::SliceOp op, const At& at) {
  if (ir::guardedDims(op).empty())
    return eval(op.getValue(), sourceOfSlice(op, at));
  unsigned kept = 0;
  for (int64_t dim = 0; dim < static_cast<int64_t>(op.getOffsets().size()); ++dim)
    if (!llvm::is_contained(op.getDropped(), dim) && at.index[kept++].step != 0 && ir::isGuarded(op, dim))
      return lanesApart(op.getResult(), at, [&](const At& one) { return eval(op.getResult(), one); });
  At from = sourceOfSlice(op, at);
  Values bounds = extents(op.getValue());
  Value inside;
  for (int64_t dim : ir::guardedDims(op))
    inside = l.both(inside, isLess(l, from.index[static_cast<size_t>(dim)].base, bounds[static_cast<size_t>(dim)]));
  llvm::SaveAndRestore exists(exists_, l.both(exists_, inside));
  Frame frame(*this);
  Value value = eval(op.getValue(), from);
  return choose(l, inside, value, l.zero(value.getType()));
}

/// The same operation on this thread's elements.
Value Evaluator::evalElementwise(mlir::Operation* op, const At& at) {
  mlir::OperationState state(l.loc, op->getName());
  for (mlir::Value operand : op->getOperands())
    state.operands.push_back(isTile(operand) ? eval(operand, at) : splat(l, l.scalar(operand), at.lanes));
  state.types.push_back(valueType(elementType(op->getResult(0)), at.lanes));
  state.attributes = llvm::to_vector(op->getDiscardableAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  if (isOnlySummed(op))
    state.addAttribute(kSummedAttr, l.b.getUnitAttr());
  return l.b.create(state)->getResult(0);
}

Value Evaluator::evalIota(ir::IotaOp op, const At& at) {
  mlir::Type type = elementType(op.getResult());
  const Index& index = at.index[static_cast<unsigned>(op.getDim())];
  Value base = type.isIndex() ? index.base : ir::fromIndex(l.b, l.loc, type, index.base);
  if (at.lanes == 1)
    return base;
  Values lanes;
  for (unsigned lane = 0; lane < at.lanes; ++lane) {
    if (lane == 0 || index.step == 0) {
      lanes.push_back(base);
      continue;
    }
    auto distance = l.b.getIntegerAttr(type, index.step * lane);
    lanes.push_back(l.b.create<arith::AddIOp>(l.loc, base, l.b.create<arith::ConstantOp>(l.loc, distance)));
  }
  return gather(l, lanes);
}

/// Tiles of different constants become a choice by position: they are small, being written out in the program.
Value Evaluator::evalConstant(arith::ConstantOp op, const At& at) {
  mlir::Attribute value = op.getValue();
  mlir::Type type = elementType(op.getResult());
  auto scalar = [&](mlir::Attribute attribute) -> Value {
    return l.b.create<arith::ConstantOp>(l.loc, type, llvm::cast<mlir::TypedAttr>(attribute));
  };
  if (auto same = llvm::dyn_cast<mlir::SplatElementsAttr>(value))
    return splat(l, scalar(same.getSplatValue<mlir::Attribute>()), at.lanes);
  auto dense = llvm::cast<mlir::DenseElementsAttr>(value);
  return lanesApart(op.getResult(), at, [&](const At& one) {
    Value linear = l.constant(0);
    for (auto [index, extent] : llvm::zip(one.index, dense.getType().getShape()))
      linear = l.add(l.mul(linear, l.constant(extent)), index.base);
    Value result;
    for (auto [number, element] : llvm::enumerate(dense.getValues<mlir::Attribute>())) {
      Value here = scalar(element);
      if (!result) {
        result = here;
        continue;
      }
      Value is =
          l.b.create<arith::CmpIOp>(l.loc, arith::CmpIPredicate::eq, linear, l.constant(static_cast<int64_t>(number)));
      result = l.b.create<arith::SelectOp>(l.loc, is, here, result);
    }
    return result ? result : l.zero(type);
  });
}

//===-- reshape -----------------------------------------------------------------------------------------------===//

static bool isOne(Lowering& l, Value extent) { return l.constantOf(extent) == 1; }

/// Nothing when the lanes land on positions that are not a run: they are then taken apart.
std::optional<At> Evaluator::sourceOfReshape(ir::ReshapeOp op, const At& at) {
  ir::ReshapeParts parts = ir::reshapeParts(op);
  unsigned fromRank = rankOf(op.getValue()), toRank = static_cast<unsigned>(at.index.size());
  Values toExtents = extents(op.getResult()), fromExtents = extents(op.getValue());
  At from{{}, at.lanes, at.mask};
  from.index.append(at.index.begin(), at.index.begin() + parts.prefix);
  Index linear{l.constant(0), 0};
  for (unsigned dim = parts.prefix; dim < toRank - parts.suffix; ++dim) {
    linear.masked |= at.index[dim].masked;
    if (isOne(l, toExtents[dim]))
      continue;
    if (linear.step != 0)
      return std::nullopt;  // a run along a dimension that is not the last of the group
    linear.base = l.add(l.mul(linear.base, toExtents[dim]), at.index[dim].base);
    linear.step = at.index[dim].step;
  }
  unsigned middle = fromRank - parts.prefix - parts.suffix;
  llvm::SmallVector<Index> digits(middle, Index{l.constant(0), 0, linear.masked});
  Index rest = linear;
  int first = -1;
  for (unsigned i = 0; i < middle && first < 0; ++i)
    if (!isOne(l, fromExtents[parts.prefix + i]))
      first = static_cast<int>(i);
  for (unsigned i = middle; i-- > 0;) {
    Value extent = fromExtents[parts.prefix + i];
    if (isOne(l, extent))
      continue;
    if (static_cast<int>(i) == first) {
      digits[i] = rest;
      break;
    }
    if (rest.step != 0) {
      if (!wide || wide->isPeeled())
        return std::nullopt;
      wide->multiple(extent, at.lanes);  // then a run stays inside one row
    }
    digits[i] = {l.rem(rest.base, extent), rest.step, rest.masked};
    rest = {l.div(rest.base, extent), 0, rest.masked};
  }
  from.index.append(digits);
  from.index.append(at.index.end() - parts.suffix, at.index.end());
  return from;
}

}  // namespace vortex::target::gpu::tiles
