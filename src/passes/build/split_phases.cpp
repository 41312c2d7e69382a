// Phases of reductions and scans whose axis is split over blocks.
#include "passes/build/phase_builder.h"

#include "ir/combine.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

namespace vortex::passes {

using namespace mlir;

static bool isNarrow(Type element) {
  auto real = dyn_cast<FloatType>(element);
  return real && real.getWidth() < 32;
}

static Type withElement(Type type, Type element) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? Type(tensor.clone(element)) : element;
}

Value PhaseBuilder::widen(Value value) {
  if (!isNarrow(getElementTypeOrSelf(value.getType())))
    return value;
  return builder.create<arith::ExtFOp>(value.getLoc(), withElement(value.getType(), builder.getF32Type()), value);
}

Value PhaseBuilder::narrow(Value value, Type type) {
  if (value.getType() == type)
    return value;
  return builder.create<arith::TruncFOp>(value.getLoc(), type, value);
}

static bool isZero(Value tile) {
  if (auto broadcast = tile.getDefiningOp<ir::BroadcastOp>())
    tile = broadcast.getValue();
  return matchPattern(tile, m_AnyZeroFloat()) || matchPattern(tile, m_Zero());
}

int64_t PhaseBuilder::pieceCount(unsigned argument, Location loc, SmallVector<Value>& extents) {
  Value view = kernel_.getBody().getArgument(argument);
  const int64_t known = cast<ir::ViewType>(view.getType()).getShape()[0];
  if (ir::SizeAttr count = arguments ? arguments->extentInRound(argument, 0) : nullptr) {
    extents.push_back(emitSize(builder, loc, count, kernel_.getBody().getArguments()));
    return ShapedType::kDynamic;
  }
  if (ShapedType::isDynamic(known))
    extents.push_back(builder.create<ir::DimOp>(loc, builder.getIndexType(), view, builder.getI64IntegerAttr(0)));
  return known;
}

/// Every piece of the split axis left one result at its number along the first dimension of the temporary.
Value PhaseBuilder::combinePartials(Value value, unsigned argument) {
  auto reduce = value.getDefiningOp<ir::ReduceOp>();
  auto product = value.getDefiningOp<ir::DotOp>();
  Location loc = value.getLoc();
  Value view = kernel_.getBody().getArgument(argument);
  auto viewType = cast<ir::ViewType>(view.getType());
  SmallVector<Value> offsets{constant(loc, 0)}, extents;
  SmallVector<int64_t> shape{pieceCount(argument, loc, extents)};
  if (isa<RankedTensorType>(value.getType())) {
    llvm::append_range(shape, slicedType(value).getShape());
    llvm::append_range(extents, sizes(value));
    for (Axis axis : axes_.of(value)) {
      Value own = offset_.lookup(axis);
      offsets.push_back(own ? own : constant(loc, 0));
    }
  }
  Type element = viewType.getElementType();
  Value tile =
      builder.create<ir::TileLoadOp>(loc, RankedTensorType::get(shape, element), view, offsets, extents, Value(), true);
  Type total = shape.size() == 1 ? element : Type(RankedTensorType::get(ArrayRef(shape).drop_front(), element));
  ir::Combine kind = reduce ? reduce.getKind() : isa<FloatType>(element) ? ir::Combine::AddF : ir::Combine::AddI;
  Value combined = builder.create<ir::ReduceOp>(loc, total, kind, tile, builder.getDenseI64ArrayAttr({0}));
  Value result = narrow(combined, typeOf(value));
  if (!product || isZero(product.getAcc()))
    return result;
  return ir::createCombine(builder, loc, kind, get(product.getAcc()), result);
}

void PhaseBuilder::emitPartial(ir::ReduceOp reduce, Value number, unsigned argument) {
  Location loc = reduce.getLoc();
  Value wide = widen(get(reduce.getValue()));
  Type element = getElementTypeOrSelf(wide.getType()), type = typeOf(reduce.getResult());
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    type = tensor.clone(element);
  else
    type = element;
  Value piece = builder.create<ir::ReduceOp>(loc, type, reduce.getKind(), wide, reduce.getDimsAttr());
  storePartial(piece, axes_.of(reduce.getResult()), number, argument);
}

void PhaseBuilder::emitPartialProduct(ir::DotOp dot, Value number, unsigned argument) {
  Location loc = dot.getLoc();
  Value lhs = get(dot.getA()), rhs = get(dot.getB());
  Type element = accumulatorType(dot.getType());
  RankedTensorType type = slicedType(dot.getResult()).clone(element);
  Value zero = builder.create<arith::ConstantOp>(loc, cast<TypedAttr>(builder.getZeroAttr(element)));
  Value acc =
      builder.create<ir::BroadcastOp>(loc, type, zero, builder.getDenseI64ArrayAttr({}), sizes(dot.getResult()));
  auto piece = builder.create<ir::DotOp>(loc, type, lhs, rhs, acc);
  piece->setAttrs(dot->getAttrDictionary());
  storePartial(piece, axes_.of(dot.getResult()), number, argument);
}

/// `axes`: of the dimensions of `piece`.
void PhaseBuilder::storePartial(Value piece, ArrayRef<Axis> axes, Value number, unsigned argument) {
  Location loc = piece.getLoc();
  Value view = kernel_.getBody().getArgument(argument);
  if (!isa<RankedTensorType>(piece.getType())) {
    builder.create<ir::StoreOp>(loc, piece, view, ValueRange{number}, Value(), false);
    return;
  }
  SmallVector<Value> at;
  for (Axis axis : axes) {
    Value own = offset_.lookup(axis);
    at.push_back(own ? own : constant(loc, 0));
  }
  builder.create<ir::TileStoreOp>(loc, piece, rowOf(view, number, loc), at, true);
}

/// What has this number along the first dimension.
Value PhaseBuilder::rowOf(Value view, Value number, Location loc) {
  auto viewType = cast<ir::ViewType>(view.getType());
  SmallVector<Value> offsets(static_cast<size_t>(viewType.getRank()), constant(loc, 0)), extents;
  offsets[0] = number;
  for (int64_t dim = 1; dim < viewType.getRank(); ++dim)
    if (viewType.isDynamic(dim))
      extents.push_back(builder.create<ir::DimOp>(loc, builder.getIndexType(), view, builder.getI64IntegerAttr(dim)));
  auto part = ir::ViewType::get(viewType.getShape().drop_front(), viewType.getElementType());
  return builder.create<ir::SubviewOp>(loc, part, view, offsets, extents, builder.getDenseI64ArrayAttr({0}));
}

//===-- scans -------------------------------------------------------------------------------------------------===//

PhaseBuilder::Columns PhaseBuilder::columnsOf(ir::ScanOp scan) {
  Columns columns;
  Value result = scan.getResult();
  SmallVector<Value> extents = sizes(result), offsets = this->offsets(result);
  size_t next = 0;
  for (auto [dim, extent] : llvm::enumerate(slicedType(result).getShape())) {
    Value dynamic = ShapedType::isDynamic(extent) ? extents[next++] : Value();
    if (dim == scan.getDim())
      continue;
    columns.axes.push_back(axes_.of(result)[dim]);
    columns.shape.push_back(extent);
    columns.offsets.push_back(offsets[dim]);
    if (dynamic)
      columns.extents.push_back(dynamic);
  }
  return columns;
}

void PhaseBuilder::emitScanPartial(ir::ScanOp scan, Value number, unsigned partials) {
  Location loc = scan.getLoc();
  Value wide = widen(get(scan.getValue()));
  Columns columns = columnsOf(scan);
  Type element = getElementTypeOrSelf(wide.getType());
  Type type = columns.shape.empty() ? element : Type(RankedTensorType::get(columns.shape, element));
  Value total = builder.create<ir::ReduceOp>(loc, type, scan.getKind(), wide,
                                             builder.getDenseI64ArrayAttr({static_cast<int64_t>(scan.getDim())}));
  storePartial(total, columns.axes, number, partials);
}

void PhaseBuilder::emitScanCarries(ir::ScanOp scan, unsigned partials, unsigned carries) {
  Location loc = scan.getLoc();
  Value view = kernel_.getBody().getArgument(partials);
  auto viewType = cast<ir::ViewType>(view.getType());
  Columns columns = columnsOf(scan);
  SmallVector<Value> extents, at{constant(loc, 0)};
  SmallVector<int64_t> shape{pieceCount(partials, loc, extents)};
  llvm::append_range(shape, columns.shape);
  llvm::append_range(extents, columns.extents);
  llvm::append_range(at, columns.offsets);
  auto type = RankedTensorType::get(shape, viewType.getElementType());
  Value tile = builder.create<ir::TileLoadOp>(loc, type, view, at, extents, Value(), true);
  Value before = builder.create<ir::ScanOp>(loc, type, scan.getKind(), tile, 0, true, Value(), Value());
  builder.create<ir::TileStoreOp>(loc, before, kernel_.getBody().getArgument(carries), at, true);
}

/// Columns start with their carry in the first row, so that the scan is what is stored.
void PhaseBuilder::emitScanPiece(ir::ScanOp scan, Value number, unsigned carries) {
  Location loc = scan.getLoc();
  Value wide = widen(get(scan.getValue())), view = kernel_.getBody().getArgument(carries);
  auto type = cast<RankedTensorType>(wide.getType());
  SmallVector<Value> extents = sizes(scan.getResult());
  auto broadcast = [&](Value value, Type element, ArrayRef<int64_t> dims) -> Value {
    return builder.create<ir::BroadcastOp>(loc, type.clone(element), value, builder.getDenseI64ArrayAttr(dims),
                                           extents);
  };
  Type element = type.getElementType();
  if (type.getRank() == 1) {
    Value own = builder.create<ir::ScanOp>(loc, type, scan.getKind(), wide, 0, scan.getExclusive(), Value(), Value());
    Value carry = builder.create<ir::LoadOp>(loc, element, view, ValueRange{number}, Value(), false);
    Value result = ir::createCombine(builder, loc, scan.getKind(), broadcast(carry, element, {}), own);
    mapping_.map(scan.getResult(), narrow(result, typeOf(scan.getResult())));
    return;
  }
  Columns columns = columnsOf(scan);
  SmallVector<int64_t> others;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != static_cast<int64_t>(scan.getDim()))
      others.push_back(dim);
  Value carry =
      builder.create<ir::TileLoadOp>(loc, RankedTensorType::get(columns.shape, element), rowOf(view, number, loc),
                                     columns.offsets, columns.extents, Value(), true);
  Type index = builder.getIndexType();
  Value row = builder.create<ir::IotaOp>(loc, type.clone(index), static_cast<int64_t>(scan.getDim()), extents);
  Value isFirst =
      builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, row, broadcast(constant(loc, 0), index, {}));
  Value neutral = builder.create<arith::ConstantOp>(loc, ir::neutralElement(scan.getKind(), element));
  Value start =
      builder.create<arith::SelectOp>(loc, isFirst, broadcast(carry, element, others), broadcast(neutral, element, {}));
  Value value = ir::createCombine(builder, loc, scan.getKind(), start, wide);
  mapping_.map(scan.getResult(),
               builder.create<ir::ScanOp>(loc, type, scan.getKind(), value, scan.getDim(), false, Value(), Value()));
}

/// In the order in which blocks start, so that a block waits for started ones only.
void PhaseBuilder::takeNumber(ir::ScanOp scan, unsigned state) {
  Location loc = scan.getLoc();
  Value one = builder.create<arith::ConstantIntOp>(loc, 1, 64);
  Value number = builder.create<ir::AtomicRmwOp>(loc, ir::Combine::AddI, one, kernel_.getBody().getArgument(state),
                                                 ValueRange{constant(loc, 0)}, Value(), ir::Order::Relaxed,
                                                 ir::Scope::Device, false);
  blockNumber = builder.create<arith::IndexCastOp>(loc, builder.getIndexType(), number);
}

void PhaseBuilder::emitLookBackPiece(ir::ScanOp scan, unsigned state) {
  Location loc = scan.getLoc();
  Value wide = widen(get(scan.getValue()));
  Value result = builder.create<ir::ScanOp>(loc, wide.getType(), scan.getKind(), wide, 0, scan.getExclusive(),
                                            blockNumber, kernel_.getBody().getArgument(state));
  mapping_.map(scan.getResult(), narrow(result, typeOf(scan.getResult())));
}

void PhaseBuilder::emitClear(ir::SizeAttr extent, int64_t chunk, unsigned argument) {
  Location loc = kernel_.getLoc();
  auto arguments = kernel_.getBody().getArguments();
  Value block = builder.create<ir::BlockIdOp>(loc, builder.getIndexType(), ir::Axis::X);
  Value offset = builder.create<arith::MulIOp>(loc, block, constant(loc, chunk));
  Value left = builder.create<arith::SubIOp>(loc, emitSize(builder, loc, extent, arguments), offset);
  Value size = builder.create<arith::MinUIOp>(loc, left, constant(loc, chunk));
  Type element = cast<ir::ViewType>(arguments[argument].getType()).getElementType();
  auto type = RankedTensorType::get({ShapedType::kDynamic}, element);
  Value zero = builder.create<arith::ConstantOp>(loc, cast<TypedAttr>(builder.getZeroAttr(element)));
  Value zeros = builder.create<ir::BroadcastOp>(loc, type, zero, builder.getDenseI64ArrayAttr({}), ValueRange{size});
  builder.create<ir::TileStoreOp>(loc, zeros, arguments[argument], ValueRange{offset}, true);
}

}  // namespace vortex::passes
