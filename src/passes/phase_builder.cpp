#include "passes/phase_builder.h"

#include "ir/index_cast.h"
#include "ir/tile_sizes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

static Value emitArgument(OpBuilder& builder, Location loc, const size::Node& node, Value argument) {
  if (node.op == SizeOp::Dim)
    return builder.create<ir::DimOp>(loc, builder.getIndexType(), argument, builder.getI64IntegerAttr(node.dim));
  VORTEX_CHECK(node.op == SizeOp::Scalar, "argument %d in a schedule's size", static_cast<int>(node.op));
  if (argument.getType().isIndex())
    return argument;
  return builder.create<arith::IndexCastOp>(loc, builder.getIndexType(), argument);
}

static Value emitOperator(OpBuilder& builder, Location loc, SizeOp op, Value lhs, Value rhs) {
  auto total = [&](ir::IntKind kind) -> Value { return builder.create<ir::IntOp>(loc, lhs.getType(), kind, lhs, rhs); };
  auto compare = [&](arith::CmpIPredicate predicate) -> Value {
    Value bit = builder.create<arith::CmpIOp>(loc, predicate, lhs, rhs);
    return builder.create<arith::IndexCastUIOp>(loc, builder.getIndexType(), bit);
  };
  switch (op) {
  case SizeOp::Add: return builder.create<arith::AddIOp>(loc, lhs, rhs);
  case SizeOp::Sub: return builder.create<arith::SubIOp>(loc, lhs, rhs);
  case SizeOp::Mul: return builder.create<arith::MulIOp>(loc, lhs, rhs);
  case SizeOp::FloorDiv: return total(ir::IntKind::DivU);
  case SizeOp::CeilDiv: return total(ir::IntKind::CeilDivU);
  case SizeOp::Mod: return total(ir::IntKind::RemU);
  case SizeOp::Min: return builder.create<arith::MinUIOp>(loc, lhs, rhs);
  case SizeOp::Max: return builder.create<arith::MaxUIOp>(loc, lhs, rhs);
  case SizeOp::Equal: return compare(arith::CmpIPredicate::eq);
  case SizeOp::Less: return compare(arith::CmpIPredicate::slt);
  case SizeOp::Not: rhs = builder.create<arith::ConstantIndexOp>(loc, 0); return compare(arith::CmpIPredicate::eq);
  default: VORTEX_UNREACHABLE("operator %d in a schedule's size", static_cast<int>(op));
  }
}

Value emitSize(OpBuilder& builder, Location loc, ir::SizeAttr size, Block::BlockArgListType arguments) {
  return size::fold<Value>(size.getExpr(), [&](const size::Node& node, const std::array<Value, 3>& operands) -> Value {
    if (node.op == SizeOp::Constant)
      return builder.create<arith::ConstantIndexOp>(loc, node.value);
    if (size::isArgument(node.op))
      return emitArgument(builder, loc, node, arguments[node.argument]);
    return emitOperator(builder, loc, node.op, operands[0], operands[1]);
  });
}

PhaseBuilder::PhaseBuilder(ir::KernelOp source, ir::KernelOp kernel, const Axes& axes, const Clusters& clusters,
                           const Temporaries& temporaries)
    : builder(kernel.getContext()), kernel_(kernel), axes_(axes), clusters_(clusters), temporaries_(temporaries) {
  builder.setInsertionPointToEnd(&kernel.getBody().front());
  for (auto [from, to] : llvm::zip(source.getBody().getArguments(), kernel.getBody().getArguments()))
    mapping_.map(from, to);
}

Value PhaseBuilder::constant(Location loc, int64_t value) { return builder.create<arith::ConstantIndexOp>(loc, value); }

std::pair<Value, Value> PhaseBuilder::groupedPieces(Value number, Value rows, Value columns, int64_t group) {
  Location loc = kernel_.getLoc();
  auto integer = [&](ir::IntKind kind, Value a, Value b) -> Value {
    return builder.create<ir::IntOp>(loc, a.getType(), kind, a, b);
  };
  Value height = constant(loc, group);
  Value perGroup = builder.create<arith::MulIOp>(loc, columns, height);
  Value first = builder.create<arith::MulIOp>(loc, integer(ir::IntKind::DivU, number, perGroup), height);
  Value within = integer(ir::IntKind::RemU, number, perGroup);
  Value left = builder.create<arith::SubIOp>(loc, rows, first);
  Value here = builder.create<arith::MinUIOp>(loc, left, height);
  Value row = builder.create<arith::AddIOp>(loc, first, integer(ir::IntKind::RemU, within, here));
  return {row, integer(ir::IntKind::DivU, within, here)};
}

void PhaseBuilder::split(ArrayRef<Axis> parallel, ArrayRef<ir::SizeAttr> chunks, int64_t group) {
  Location loc = kernel_.getLoc();
  auto arguments = kernel_.getBody().getArguments();
  if (parallel.empty())
    return;
  Value rest = builder.create<ir::BlockIdOp>(loc, builder.getIndexType(), ir::Axis::X);
  auto pieces = [&](size_t i) {
    return emitSize(builder, loc, ir::sizeBinary(SizeOp::CeilDiv, axes_.extent(parallel[i]), chunks[i]), arguments);
  };
  SmallVector<Value> numbers(parallel.size());
  size_t ungrouped = parallel.size();
  if (group > 1 && parallel.size() >= 2) {
    ungrouped -= 2;
    Value rows = pieces(ungrouped), columns = pieces(ungrouped + 1);
    Value all = builder.create<arith::MulIOp>(loc, rows, columns);
    Value inside = rest;
    if (ungrouped > 0) {
      inside = builder.create<ir::IntOp>(loc, rest.getType(), ir::IntKind::RemU, rest, all);
      rest = builder.create<ir::IntOp>(loc, rest.getType(), ir::IntKind::DivU, rest, all);
    }
    std::tie(numbers[ungrouped], numbers[ungrouped + 1]) = groupedPieces(inside, rows, columns, group);
  }
  for (size_t i = parallel.size(); i-- > 0;) {
    ir::SizeAttr extentSize = axes_.extent(parallel[i]);
    Value extent = emitSize(builder, loc, extentSize, arguments);
    Value chunk = emitSize(builder, loc, chunks[i], arguments);
    Value number = numbers[i] ? numbers[i] : rest;
    if (i > 0 && !numbers[i]) {
      Value count = pieces(i);
      number = builder.create<ir::IntOp>(loc, rest.getType(), ir::IntKind::RemU, rest, count);
      rest = builder.create<ir::IntOp>(loc, rest.getType(), ir::IntKind::DivU, rest, count);
    }
    Value offset = builder.create<arith::MulIOp>(loc, number, chunk);
    Value left = builder.create<arith::SubIOp>(loc, extent, offset);
    number_[parallel[i]] = number;
    offset_[parallel[i]] = offset;
    size_[parallel[i]] = builder.create<arith::MinUIOp>(loc, left, chunk);
  }
}

RankedTensorType PhaseBuilder::slicedType(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, axis] : llvm::enumerate(axes_.of(value)))
    if (size_.contains(axis))
      shape[dim] = ShapedType::kDynamic;
  return RankedTensorType::get(shape, type.getElementType());
}

Type PhaseBuilder::typeOf(Value value) const {
  return isa<RankedTensorType>(value.getType()) ? Type(slicedType(value)) : value.getType();
}

SmallVector<Value> PhaseBuilder::shift(OperandRange offsets, Value tile) {
  SmallVector<Value> result;
  SmallVector<Axis> axes = axes_.of(tile);
  for (auto [dim, offset] : llvm::enumerate(offsets)) {
    Value shifted = get(offset);
    if (dim < axes.size())
      if (Value own = offset_.lookup(axes[dim]))
        shifted =
            getConstantIntValue(shifted) == 0 ? own : Value(builder.create<arith::AddIOp>(tile.getLoc(), shifted, own));
    result.push_back(shifted);
  }
  return result;
}

SmallVector<Value> PhaseBuilder::sizes(Value tile) {
  SmallVector<Value> result;
  auto type = slicedType(tile);
  SmallVector<OpFoldResult> original = ir::tileSizes(tile);
  for (auto [dim, axis] : llvm::enumerate(axes_.of(tile))) {
    if (!type.isDynamicDim(static_cast<unsigned>(dim)))
      continue;
    if (Value own = size_.lookup(axis))
      result.push_back(own);
    else if (auto value = dyn_cast_if_present<Value>(original[dim]))
      result.push_back(get(value));
    else
      result.push_back(emitSize(builder, tile.getLoc(), axes_.extent(axis), kernel_.getBody().getArguments()));
  }
  return result;
}

Value PhaseBuilder::loadTemporary(Value value, unsigned argument, Value like) {
  Location loc = value.getLoc();
  Value view = kernel_.getBody().getArgument(argument);
  if (!isa<RankedTensorType>(value.getType())) {
    Value zero = constant(loc, 0);
    return builder.create<ir::LoadOp>(loc, value.getType(), view, ValueRange{zero}, Value(), false);
  }
  return builder.create<ir::TileLoadOp>(loc, slicedType(like), view, offsets(like), sizes(like), Value(), true);
}

SmallVector<Value> PhaseBuilder::offsets(Value tile) {
  SmallVector<Value> result;
  for (Axis axis : axes_.of(tile)) {
    Value own = offset_.lookup(axis);
    result.push_back(own ? own : constant(tile.getLoc(), 0));
  }
  return result;
}

void PhaseBuilder::emitCopy(ir::TileLoadOp load, unsigned argument) {
  Value piece = get(load.getResult());
  builder.create<ir::TileStoreOp>(load.getLoc(), piece, kernel_.getBody().getArgument(argument),
                                  offsets(load.getResult()), true);
}

Value PhaseBuilder::get(Value value) {
  if (Value known = mapping_.lookupOrNull(value))
    return known;
  Operation* producer = value.getDefiningOp();
  VORTEX_CHECK(producer, "a block argument is used before its region is cloned");
  Value result;
  auto temporary = temporaries_.find(value);
  if (auto partial = partials.find(value); partial != partials.end())
    result = combinePartials(value, partial->second);
  else if (auto copy = copies.find(value); copy != copies.end())
    result = loadTemporary(value, copy->second, value);
  else if (clusters_.isRoot(producer) && temporary != temporaries_.end())
    result = loadTemporary(value, temporary->second, value);
  else
    result = clone(producer)->getResult(cast<OpResult>(value).getResultNumber());
  mapping_.map(value, result);
  return result;
}

Operation* PhaseBuilder::clone(Operation* op) {
  Location loc = op->getLoc();
  if (op->getNumRegions() != 0)
    return cloneRegions(op);
  if (auto load = dyn_cast<ir::TileLoadOp>(op))
    return builder.create<ir::TileLoadOp>(loc, slicedType(load.getResult()), get(load.getView()),
                                          shift(load.getOffsets(), load.getResult()), sizes(load.getResult()),
                                          load.getOther() ? get(load.getOther()) : Value(), load.getInbounds());
  if (auto store = dyn_cast<ir::TileStoreOp>(op)) {
    if (Operation* value = store.getValue().getDefiningOp(); axes_.flattens(value) && !clusters_.isRoot(value))
      return storeFlattened(cast<ir::ReshapeOp>(value), get(store.getView()), get(store.getOffsets()[0]),
                            store.getInbounds());
    return builder.create<ir::TileStoreOp>(loc, get(store.getValue()), get(store.getView()),
                                           shift(store.getOffsets(), store.getValue()), store.getInbounds());
  }
  if (auto broadcast = dyn_cast<ir::BroadcastOp>(op))
    return builder.create<ir::BroadcastOp>(loc, slicedType(broadcast.getResult()), get(broadcast.getValue()),
                                           broadcast.getDimsAttr(), sizes(broadcast.getResult()));
  if (auto reshape = dyn_cast<ir::ReshapeOp>(op))
    return cloneReshape(reshape);
  if (auto slice = dyn_cast<ir::SliceOp>(op)) {
    // Offsets count source dimensions; only kept ones have an axis in the result.
    SmallVector<Value> offsets;
    SmallVector<Axis> from = axes_.of(slice.getValue()), to = axes_.of(slice.getResult());
    unsigned kept = 0;
    for (auto [dim, offset] : llvm::enumerate(slice.getOffsets())) {
      Value shifted = get(offset);
      if (!llvm::is_contained(slice.getDropped(), static_cast<int64_t>(dim))) {
        Axis axis = to[kept++];
        if (Value own = axis == from[dim] ? Value() : offset_.lookup(axis))
          shifted = builder.create<arith::AddIOp>(loc, shifted, own);
      }
      offsets.push_back(shifted);
    }
    return builder.create<ir::SliceOp>(loc, slicedType(slice.getResult()), get(slice.getValue()), offsets,
                                       sizes(slice.getResult()), slice.getDroppedAttr());
  }
  if (auto iota = dyn_cast<ir::IotaOp>(op)) {
    auto type = slicedType(iota.getResult());
    Operation* result = builder.create<ir::IotaOp>(loc, type, iota.getDim(), sizes(iota.getResult()));
    Value own = offset_.lookup(axes_.of(iota.getResult())[static_cast<unsigned>(iota.getDim())]);
    if (!own)
      return result;
    Type element = type.getElementType();
    Value offset = element.isIndex() ? own : ir::fromIndex(builder, loc, element, own);
    Value wide =
        builder.create<ir::BroadcastOp>(loc, type, offset, builder.getDenseI64ArrayAttr({}), sizes(iota.getResult()));
    return builder.create<arith::AddIOp>(loc, result->getResult(0), wide);
  }
  if (auto constantOp = dyn_cast<arith::ConstantOp>(op); constantOp && isa<RankedTensorType>(constantOp.getType())) {
    auto splat = dyn_cast<SplatElementsAttr>(constantOp.getValue());
    auto type = slicedType(constantOp.getResult());
    if (splat && type != constantOp.getType()) {
      Value scalar = builder.create<arith::ConstantOp>(loc, cast<TypedAttr>(splat.getSplatValue<Attribute>()));
      return builder.create<ir::BroadcastOp>(loc, type, scalar, builder.getDenseI64ArrayAttr({}),
                                             sizes(constantOp.getResult()));
    }
  }
  OperationState state(loc, op->getName());
  for (Value operand : op->getOperands())
    state.operands.push_back(get(operand));
  for (Value result : op->getResults())
    state.types.push_back(typeOf(result));
  state.attributes = llvm::to_vector(op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return builder.create(state);
}

/// Axes that only the result has are cut out of the whole reshaped tile.
Operation* PhaseBuilder::cloneReshape(ir::ReshapeOp op) {
  if (op->hasAttr(kApartAttribute))
    return loadTemporary(op.getValue(), temporaries_.at(op.getValue()), op.getResult()).getDefiningOp();
  Location loc = op.getLoc();
  Value result = op.getResult();
  SmallVector<Axis> from = axes_.of(op.getValue()), to = axes_.of(result);
  auto isCut = [&](Axis axis) { return size_.contains(axis) && !llvm::is_contained(from, axis); };
  if (llvm::none_of(to, isCut))
    return builder.create<ir::ReshapeOp>(loc, slicedType(result), get(op.getValue()), sizes(result));
  RankedTensorType piece = slicedType(result);
  SmallVector<int64_t> shape(piece.getShape());
  SmallVector<Value> whole, offsets, cut = sizes(result);
  SmallVector<OpFoldResult> original = ir::tileSizes(result);
  auto next = cut.begin();
  for (auto [dim, axis] : llvm::enumerate(to)) {
    Value own = ShapedType::isDynamic(shape[dim]) ? *next++ : Value();
    offsets.push_back(isCut(axis) ? offset_.lookup(axis) : constant(loc, 0));
    if (isCut(axis))
      shape[dim] = cast<RankedTensorType>(result.getType()).getDimSize(static_cast<unsigned>(dim));
    if (!ShapedType::isDynamic(shape[dim]))
      continue;
    auto value = dyn_cast_if_present<Value>(original[dim]);
    whole.push_back(!isCut(axis) ? own
                    : value      ? get(value)
                                 : emitSize(builder, loc, axes_.extent(axis), kernel_.getBody().getArguments()));
  }
  Value all = builder.create<ir::ReshapeOp>(loc, RankedTensorType::get(shape, piece.getElementType()),
                                            get(op.getValue()), whole);
  return builder.create<ir::SliceOp>(loc, piece, all, offsets, cut, builder.getDenseI64ArrayAttr({}));
}

Operation* PhaseBuilder::cloneRegions(Operation* op) {
  // Values from outside are made before the loop, so that they dominate every use.
  Clusters::forEachOperand(op, [&](Value value) { get(value); });
  OperationState state(op->getLoc(), op->getName());
  for (Value operand : op->getOperands())
    state.operands.push_back(get(operand));
  for (Value result : op->getResults())
    state.types.push_back(typeOf(result));
  state.attributes = llvm::to_vector(op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    state.addRegion();
  Operation* copy = builder.create(state);
  for (auto [from, to] : llvm::zip(op->getRegions(), copy->getRegions())) {
    if (from.empty())
      continue;
    Block* block = new Block();
    to.push_back(block);
    for (BlockArgument argument : from.front().getArguments())
      mapping_.map(argument, block->addArgument(typeOf(argument), argument.getLoc()));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(block);
    for (Operation& inner : from.front()) {
      Operation* made = clone(&inner);
      for (auto [before, after] : llvm::zip(inner.getResults(), made->getResults()))
        mapping_.map(before, after);
    }
  }
  return copy;
}

Operation* PhaseBuilder::storeFlattened(ir::ReshapeOp reshape, Value view, Value offset, bool inbounds) {
  Location loc = reshape.getLoc();
  Value source = reshape.getValue(), piece = get(source), count, before = constant(loc, 0);
  auto arguments = kernel_.getBody().getArguments();
  for (Axis axis : axes_.of(source)) {
    Value extent = emitSize(builder, loc, axes_.extent(axis), arguments);
    Value size = size_.contains(axis) ? size_.lookup(axis) : extent;
    before = builder.create<arith::MulIOp>(loc, before, extent);
    if (Value own = offset_.lookup(axis))
      before = builder.create<arith::AddIOp>(loc, before, own);
    count = count ? Value(builder.create<arith::MulIOp>(loc, count, size)) : size;
  }
  auto element = cast<RankedTensorType>(piece.getType()).getElementType();
  auto flat = builder.create<ir::ReshapeOp>(loc, RankedTensorType::get({ShapedType::kDynamic}, element), piece, count);
  Value start = builder.create<arith::AddIOp>(loc, offset, before);
  return builder.create<ir::TileStoreOp>(loc, flat, view, start, inbounds);
}

void PhaseBuilder::emitRoot(Operation* op) {
  if (axes_.flattens(op)) {
    Value result = op->getResult(0);
    if (auto temporary = temporaries_.find(result); temporary != temporaries_.end())
      storeFlattened(cast<ir::ReshapeOp>(op), kernel_.getBody().getArgument(temporary->second),
                     constant(op->getLoc(), 0), true);
    return;
  }
  Operation* made = clone(op);
  for (auto [before, after] : llvm::zip(op->getResults(), made->getResults()))
    mapping_.map(before, after);
  storeTemporaries(op);
}

void PhaseBuilder::storeTemporaries(Operation* op) {
  for (Value result : op->getResults()) {
    auto temporary = temporaries_.find(result);
    if (temporary == temporaries_.end())
      continue;
    Value view = kernel_.getBody().getArgument(temporary->second);
    if (isa<RankedTensorType>(result.getType())) {
      builder.create<ir::TileStoreOp>(op->getLoc(), mapping_.lookup(result), view, offsets(result), true);
    } else {
      builder.create<ir::StoreOp>(op->getLoc(), mapping_.lookup(result), view, ValueRange{constant(op->getLoc(), 0)},
                                  Value(), false);
    }
  }
}

void PhaseBuilder::finish() { builder.create<ir::ReturnOp>(kernel_.getLoc()); }

}  // namespace vortex::passes
