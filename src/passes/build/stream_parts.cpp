// exp(maximum of a piece - maximum of all) is what the sums and the product of the piece are multiplied by: the algebra of base/maximum_sum.h, over all
// pieces at once. A piece of which nothing is left has the maximum -inf and the factor 0.
#include "passes/build/stream_parts.h"

#include "ir/tile_sizes.h"
#include "passes/build/phase_builder.h"
#include "passes/plan/stream_loop.h"

#include <limits>

namespace vortex::passes {

using namespace mlir;

void boundToPiece(scf::ForOp loop, Value extent, Value piece, Value number) {
  OpBuilder b(loop);
  Location loc = loop.getLoc();
  Value begin = b.create<arith::MulIOp>(loc, number, piece);
  Value end = b.create<arith::MinSIOp>(loc, b.create<arith::AddIOp>(loc, begin, piece), extent);
  // A lower bound behind the piece would be the first chunk of another one.
  Value lower = loop.getLowerBound();
  Value isBehind = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sge, lower, end);
  Value inside = b.create<arith::MaxSIOp>(loc, lower, begin);
  loop.setLowerBound(b.create<arith::SelectOp>(loc, isBehind, begin, inside));
  loop.setUpperBound(b.create<arith::MinSIOp>(loc, loop.getUpperBound(), end));
}

/// The number of the block's element among the dimensions of `whole` before `rows`, along each of which it has one.
Value PhaseBuilder::numberBefore(Value whole, unsigned rows) {
  Location loc = whole.getLoc();
  Value number = constant(loc, 0);
  const auto axes = axes_.of(whole);
  for (Axis axis : ArrayRef(axes).take_front(rows)) {
    Value extent = emitSize(builder, loc, axes_.extent(axis), kernel_.getBody().getArguments());
    number = builder.create<arith::MulIOp>(loc, number, extent);
    if (Value own = offset_.lookup(axis))
      number = builder.create<arith::AddIOp>(loc, number, own);
  }
  return number;
}

void PhaseBuilder::storeParts(scf::ForOp loop, const StreamParts& parts, Value number) {
  for (auto [whole, argument] : llvm::zip(loop.getResults(), parts.temporaries)) {
    Location loc = whole.getLoc();
    Value part = get(whole);
    auto type = cast<RankedTensorType>(part.getType());
    SmallVector<int64_t> shape{1, 1};
    SmallVector<Value> sizes, at{number, numberBefore(whole, parts.rows)};
    SmallVector<OpFoldResult> own = ir::tileSizes(part);
    llvm::append_range(shape, type.getShape().drop_front(parts.rows));
    for (OpFoldResult size : ArrayRef(own).drop_front(parts.rows))
      if (auto value = dyn_cast_if_present<Value>(size))
        sizes.push_back(value);
    llvm::append_range(at, ArrayRef(offsets(whole)).drop_front(parts.rows));
    auto placed = builder.create<ir::ReshapeOp>(loc, type.clone(shape), part, sizes);
    builder.create<ir::TileStoreOp>(loc, placed, kernel_.getBody().getArgument(argument), at, true);
  }
}

/// What all pieces have left of this block's part of a result: pieces, then the dimensions from `rows` on.
Value PhaseBuilder::loadParts(Value whole, unsigned rows, unsigned argument) {
  Location loc = whole.getLoc();
  Value view = kernel_.getBody().getArgument(argument), zero = constant(loc, 0);
  auto viewType = cast<ir::ViewType>(view.getType());
  auto extent = [&](int64_t dim) {
    return builder.create<ir::DimOp>(loc, builder.getIndexType(), view, builder.getI64IntegerAttr(dim)).getResult();
  };
  // Without the dimension of what is before the rows, of which there is one.
  SmallVector<int64_t> shape(viewType.getShape());
  shape.erase(shape.begin() + 1);
  SmallVector<Value> extents;
  for (int64_t dim = 0; dim < viewType.getRank(); ++dim)
    if (dim != 1 && viewType.isDynamic(dim))
      extents.push_back(extent(dim));
  SmallVector<Value> start(static_cast<size_t>(viewType.getRank()), zero);
  start[1] = numberBefore(whole, rows);
  Value own = builder.create<ir::SubviewOp>(loc, ir::ViewType::get(shape, viewType.getElementType()), view, start,
                                            extents, builder.getDenseI64ArrayAttr({1}));
  RankedTensorType type = slicedType(whole);
  SmallVector<int64_t> tile{shape[0]};
  SmallVector<Value> sizesOfTile, at{zero}, all = sizes(whole);
  if (ShapedType::isDynamic(shape[0]))
    sizesOfTile.push_back(extent(0));
  llvm::append_range(tile, type.getShape().drop_front(rows));
  auto before = llvm::count_if(type.getShape().take_front(rows), ShapedType::isDynamic);
  llvm::append_range(sizesOfTile, ArrayRef(all).drop_front(static_cast<size_t>(before)));
  llvm::append_range(at, ArrayRef(offsets(whole)).drop_front(rows));
  return builder.create<ir::TileLoadOp>(loc, RankedTensorType::get(tile, type.getElementType()), own, at, sizesOfTile,
                                        Value(), true);
}

/// `value` is that of the pieces' results from `rows` on; as the block's part of `whole`.
Value PhaseBuilder::placeCombined(Value whole, Value value, unsigned rows) {
  RankedTensorType type = slicedType(whole);
  auto dims = llvm::to_vector(llvm::seq<int64_t>(rows, type.getRank()));
  return builder.create<ir::BroadcastOp>(whole.getLoc(), type, value, builder.getDenseI64ArrayAttr(dims), sizes(whole));
}

void PhaseBuilder::combineParts(const StreamLoop& stream, const StreamParts& parts) {
  scf::ForOp loop = stream.loop;
  Location loc = loop.getLoc();
  const auto fast = arith::FastMathFlags::contract;
  auto reduce = [&](ir::Combine kind, Value tile) -> Value {
    auto type = cast<RankedTensorType>(tile.getType());
    return builder.create<ir::ReduceOp>(loc, type.clone(type.getShape().drop_front()), kind, tile,
                                        builder.getDenseI64ArrayAttr({0}));
  };
  auto dynamicSizes = [&](Value tile) {
    SmallVector<Value> dynamic;
    for (OpFoldResult size : ir::tileSizes(tile))
      if (auto value = dyn_cast_if_present<Value>(size))
        dynamic.push_back(value);
    return dynamic;
  };
  auto repeat = [&](Value tile, Value like, ArrayRef<int64_t> dims) -> Value {
    auto type = cast<RankedTensorType>(like.getType()).clone(getElementTypeOrSelf(tile.getType()));
    return builder.create<ir::BroadcastOp>(loc, type, tile, builder.getDenseI64ArrayAttr(dims), dynamicSizes(like));
  };
  auto number = [&](float value) -> Value {
    return builder.create<arith::ConstantOp>(loc, builder.getF32FloatAttr(value));
  };
  auto leading = [](Value tile) {
    return llvm::to_vector(llvm::seq<int64_t>(0, cast<RankedTensorType>(tile.getType()).getRank()));
  };
  Value wholeMaximum = loop.getResult(stream.maximum);
  Value maxima = loadParts(wholeMaximum, parts.rows, parts.temporaries[stream.maximum]);
  Value maximum = reduce(ir::Combine::MaxF, maxima);
  Value none = repeat(number(-std::numeric_limits<float>::infinity()), maximum, {});
  Value isNone = builder.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OEQ, maximum, none);
  Value shift = builder.create<arith::SelectOp>(loc, isNone, repeat(number(0), maximum, {}), maximum);
  SmallVector<int64_t> inner = llvm::to_vector(llvm::drop_begin(leading(maxima)));
  Value less = builder.create<arith::SubFOp>(loc, maxima, repeat(shift, maxima, inner), fast);
  Value factors = stream.isBase2 ? Value(builder.create<math::Exp2Op>(loc, less, fast))
                                 : Value(builder.create<math::ExpOp>(loc, less, fast));
  mapping_.map(wholeMaximum, placeCombined(wholeMaximum, maximum, parts.rows));
  for (auto [result, argument] : llvm::zip(loop.getResults(), parts.temporaries)) {
    if (result == wholeMaximum)
      continue;
    Value left = loadParts(result, parts.rows, argument);
    Value scales = left.getType() == factors.getType() ? factors : repeat(factors, left, leading(factors));
    Value terms = builder.create<arith::MulFOp>(loc, left, scales, fast);
    mapping_.map(result, placeCombined(result, reduce(ir::Combine::AddF, terms), parts.rows));
  }
}

}  // namespace vortex::passes
