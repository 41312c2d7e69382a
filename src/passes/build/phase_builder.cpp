#include "passes/build/phase_builder.h"

#include "ir/reshape_parts.h"
#include "ir/tile_sizes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace vortex::passes {

using namespace mlir;
using SizeOp = size::Op;

PhaseBuilder::PhaseBuilder(ir::KernelOp source, ir::KernelOp kernel, const Axes& axes, const Clusters& clusters,
                           const Temporaries& temporaries)
    : PieceCloner(kernel, axes), clusters_(clusters), temporaries_(temporaries) {
  builder.setInsertionPointToEnd(&kernel.getBody().front());
  for (auto [from, to] : llvm::zip(source.getBody().getArguments(), kernel.getBody().getArguments()))
    mapping_.map(from, to);
}

/// What is in memory is read from there.
Value PhaseBuilder::provide(Value value) {
  auto temporary = temporaries_.find(value);
  if (auto partial = partials.find(value); partial != partials.end())
    return combinePartials(value, partial->second);
  if (auto copy = copies.find(value); copy != copies.end())
    return loadCopy(value, copy->second);
  if (clusters_.isRoot(value.getDefiningOp()) && temporary != temporaries_.end())
    return loadTemporary(value, temporary->second, value);
  return {};
}

Operation* PhaseBuilder::clone(Operation* op) {
  if (auto store = dyn_cast<ir::TileStoreOp>(op)) {
    Operation* value = store.getValue().getDefiningOp();
    if (axes_.flattens(value) && !clusters_.isRoot(value))
      return storeFlattened(cast<ir::ReshapeOp>(value), get(store.getView()), get(store.getOffsets()[0]),
                            store.getInbounds());
    if (value && value->hasAttr(kByPieceAttribute))
      return storeByPiece(cast<ir::ReshapeOp>(value), store);
  }
  if (auto reshape = dyn_cast<ir::ReshapeOp>(op); reshape && op->hasAttr(kApartAttribute))
    return loadTemporary(reshape.getValue(), temporaries_.at(reshape.getValue()), reshape.getResult()).getDefiningOp();
  return PieceCloner::clone(op);
}

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

Value PhaseBuilder::split(ArrayRef<Axis> parallel, ArrayRef<ir::SizeAttr> chunks, int64_t group, bool isPart) {
  Location loc = kernel_.getLoc();
  auto arguments = kernel_.getBody().getArguments();
  if (parallel.empty())
    return {};
  Value rest =
      blockNumber ? blockNumber : Value(builder.create<ir::BlockIdOp>(loc, builder.getIndexType(), ir::Axis::X));
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
    if ((i > 0 || isPart) && !numbers[i]) {
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
  return rest;
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

/// Per dimension of a copy, from values per dimension of its load.
template <typename T> static SmallVector<T> permuted(ArrayRef<T> values, ArrayRef<int64_t> permutation) {
  SmallVector<T> result;
  for (int64_t dim : permutation)
    result.push_back(values[static_cast<size_t>(dim)]);
  return result;
}

Value PhaseBuilder::loadCopy(Value value, const CopiedLoad& copy) {
  if (copy.permutation.empty())
    return loadTemporary(value, copy.argument, value);
  Location loc = value.getLoc();
  RankedTensorType type = slicedType(value);
  SmallVector<Value> known = sizes(value), bySize(static_cast<size_t>(type.getRank())), dynamic;
  for (unsigned dim = 0, next = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      bySize[dim] = known[next++];
  for (Value size : permuted<Value>(bySize, copy.permutation))
    if (size)
      dynamic.push_back(size);
  auto turned = RankedTensorType::get(permuted(type.getShape(), copy.permutation), type.getElementType());
  Value tile =
      builder.create<ir::TileLoadOp>(loc, turned, kernel_.getBody().getArgument(copy.argument),
                                     permuted<Value>(offsets(value), copy.permutation), dynamic, Value(), true);
  return builder.create<ir::TransposeOp>(loc, type, tile, copy.permutation);
}

void PhaseBuilder::emitCopy(Value tile, const CopiedLoad& copy) {
  Value piece = get(tile);
  SmallVector<Value> starts = offsets(tile);
  if (!copy.permutation.empty()) {
    auto type = cast<RankedTensorType>(piece.getType());
    auto turned = RankedTensorType::get(permuted(type.getShape(), copy.permutation), type.getElementType());
    piece = builder.create<ir::TransposeOp>(tile.getLoc(), turned, piece, copy.permutation);
    starts = permuted<Value>(starts, copy.permutation);
  }
  builder.create<ir::TileStoreOp>(tile.getLoc(), piece, kernel_.getBody().getArgument(copy.argument), starts, true);
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

Operation* PhaseBuilder::storeByPiece(ir::ReshapeOp reshape, ir::TileStoreOp store) {
  Location loc = reshape.getLoc();
  Value piece = get(reshape.getValue());
  SmallVector<Axis> from = axes_.of(reshape.getValue()), to = axes_.of(reshape.getResult());
  const ir::ReshapeParts parts = ir::reshapeParts(reshape);
  size_t fromEnd = from.size() - parts.suffix, toEnd = to.size() - parts.suffix;
  auto extent = [&](Axis axis) { return emitSize(builder, loc, axes_.extent(axis), kernel_.getBody().getArguments()); };
  auto start = [&](Axis axis) {
    Value own = offset_.lookup(axis);
    return own ? own : constant(loc, 0);
  };
  auto integer = [&](ir::IntKind kind, Value a, Value b) -> Value {
    return builder.create<ir::IntOp>(loc, a.getType(), kind, a, b);
  };
  // The number of the piece's element among those of the regrouped dimensions, and its digits in the result.
  Value number;
  for (size_t dim = parts.prefix; dim < fromEnd; ++dim) {
    Value own = start(from[dim]);
    number =
        number ? builder.create<arith::AddIOp>(loc, builder.create<arith::MulIOp>(loc, number, extent(from[dim])), own)
               : own;
  }
  SmallVector<Value> starts(to.size());
  for (size_t dim = toEnd; dim-- > parts.prefix;) {
    bool isFirst = dim == parts.prefix;
    Value size = isFirst ? Value() : extent(to[dim]);
    starts[dim] = isFirst ? (number ? number : constant(loc, 0)) : integer(ir::IntKind::RemU, number, size);
    number = isFirst ? number : integer(ir::IntKind::DivU, number, size);
  }
  auto type = cast<RankedTensorType>(piece.getType());
  SmallVector<OpFoldResult> own = ir::tileSizes(piece);
  SmallVector<int64_t> shape(to.size(), 1);
  SmallVector<Value> sizes;
  // Of the regrouped dimensions the innermost one may be whole.
  const bool isBeside = fromEnd > parts.prefix && !offset_.contains(from[fromEnd - 1]);
  for (size_t dim = 0; dim < to.size(); ++dim) {
    const bool isRegrouped = dim >= parts.prefix && dim < toEnd;
    if (isRegrouped && (dim + 1 != toEnd || !isBeside))
      continue;
    size_t source = dim < parts.prefix ? dim : dim - toEnd + fromEnd;
    if (!isRegrouped)
      starts[dim] = start(from[source]);
    shape[dim] = type.getDimSize(static_cast<unsigned>(source));
    if (type.isDynamicDim(static_cast<unsigned>(source)))
      sizes.push_back(cast<Value>(own[source]));
  }
  for (auto [place, offset] : llvm::zip(starts, store.getOffsets()))
    if (Value before = get(offset); getConstantIntValue(before) != 0)
      place = builder.create<arith::AddIOp>(loc, before, place);
  auto regrouped = builder.create<ir::ReshapeOp>(loc, type.clone(shape), piece, sizes);
  auto made =
      builder.create<ir::TileStoreOp>(store.getLoc(), regrouped, get(store.getView()), starts, store.getInbounds());
  if (isBeside && parts.suffix == 0)
    made->setAttr(kBesideAttribute, builder.getUnitAttr());
  return made;
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
