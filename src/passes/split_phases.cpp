// Phases of reductions and scans whose axis is split over blocks.
#include "passes/phase_builder.h"

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

Type accumulatorType(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isNarrow(element) ? Type(Float32Type::get(type.getContext())) : element;
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

static Value combineTiles(OpBuilder& builder, Location loc, ir::Combine kind, Value a, Value b) {
  using ir::Combine;
  switch (kind) {
  case Combine::AddI: return builder.create<arith::AddIOp>(loc, a, b);
  case Combine::AddF: return builder.create<arith::AddFOp>(loc, a, b);
  case Combine::MulI: return builder.create<arith::MulIOp>(loc, a, b);
  case Combine::MulF: return builder.create<arith::MulFOp>(loc, a, b);
  case Combine::MaxS: return builder.create<arith::MaxSIOp>(loc, a, b);
  case Combine::MaxU: return builder.create<arith::MaxUIOp>(loc, a, b);
  case Combine::MaxF: return builder.create<arith::MaximumFOp>(loc, a, b);
  case Combine::MinS: return builder.create<arith::MinSIOp>(loc, a, b);
  case Combine::MinU: return builder.create<arith::MinUIOp>(loc, a, b);
  case Combine::MinF: return builder.create<arith::MinimumFOp>(loc, a, b);
  case Combine::And: return builder.create<arith::AndIOp>(loc, a, b);
  case Combine::Or: return builder.create<arith::OrIOp>(loc, a, b);
  case Combine::Xor: return builder.create<arith::XOrIOp>(loc, a, b);
  case Combine::Exchange: break;
  }
  VORTEX_UNREACHABLE("a scan that exchanges");
}

static bool isZero(Value tile) {
  if (auto broadcast = tile.getDefiningOp<ir::BroadcastOp>())
    tile = broadcast.getValue();
  return matchPattern(tile, m_AnyZeroFloat()) || matchPattern(tile, m_Zero());
}

/// Every piece of the split axis left one result at its number along the first dimension of the temporary.
Value PhaseBuilder::combinePartials(Value value, unsigned argument) {
  auto reduce = value.getDefiningOp<ir::ReduceOp>();
  auto product = value.getDefiningOp<ir::DotOp>();
  Location loc = value.getLoc();
  Value view = kernel_.getBody().getArgument(argument);
  auto viewType = cast<ir::ViewType>(view.getType());
  SmallVector<int64_t> shape{viewType.getShape()[0]};
  SmallVector<Value> offsets{constant(loc, 0)}, extents;
  if (ShapedType::isDynamic(shape[0]))
    extents.push_back(builder.create<ir::DimOp>(loc, builder.getIndexType(), view, builder.getI64IntegerAttr(0)));
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
  return combineTiles(builder, loc, kind, get(product.getAcc()), result);
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
  storePartial(piece, reduce.getResult(), number, argument);
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
  storePartial(piece, dot.getResult(), number, argument);
}

/// `whole`: the value of the source kernel that `piece` is a part of.
void PhaseBuilder::storePartial(Value piece, Value whole, Value number, unsigned argument) {
  Location loc = whole.getLoc();
  Value view = kernel_.getBody().getArgument(argument);
  if (!isa<RankedTensorType>(whole.getType())) {
    builder.create<ir::StoreOp>(loc, piece, view, ValueRange{number}, Value(), false);
    return;
  }
  auto viewType = cast<ir::ViewType>(view.getType());
  SmallVector<Value> offsets(static_cast<size_t>(viewType.getRank()), constant(loc, 0)), extents, at;
  offsets[0] = number;
  for (int64_t dim = 1; dim < viewType.getRank(); ++dim)
    if (viewType.isDynamic(dim))
      extents.push_back(builder.create<ir::DimOp>(loc, builder.getIndexType(), view, builder.getI64IntegerAttr(dim)));
  auto part = ir::ViewType::get(viewType.getShape().drop_front(), viewType.getElementType());
  Value row = builder.create<ir::SubviewOp>(loc, part, view, offsets, extents, builder.getDenseI64ArrayAttr({0}));
  for (Axis axis : axes_.of(whole)) {
    Value own = offset_.lookup(axis);
    at.push_back(own ? own : constant(loc, 0));
  }
  builder.create<ir::TileStoreOp>(loc, piece, row, at, true);
}

//===-- scans -------------------------------------------------------------------------------------------------===//

void PhaseBuilder::emitScanPartial(ir::ScanOp scan, unsigned partials) {
  Location loc = scan.getLoc();
  Value wide = widen(get(scan.getValue()));
  Value total = builder.create<ir::ReduceOp>(loc, getElementTypeOrSelf(wide.getType()), scan.getKind(), wide,
                                             builder.getDenseI64ArrayAttr({0}));
  Value block = builder.create<ir::BlockIdOp>(loc, builder.getIndexType(), ir::Axis::X);
  builder.create<ir::StoreOp>(loc, total, kernel_.getBody().getArgument(partials), ValueRange{block}, Value(), false);
}

void PhaseBuilder::emitScanCarries(ir::ScanOp scan, unsigned partials, unsigned carries) {
  Location loc = scan.getLoc();
  Value view = kernel_.getBody().getArgument(partials), zero = constant(loc, 0);
  auto viewType = cast<ir::ViewType>(view.getType());
  SmallVector<Value> sizes;
  if (!viewType.hasStaticShape())
    sizes.push_back(builder.create<ir::DimOp>(loc, builder.getIndexType(), view, builder.getI64IntegerAttr(0)));
  auto type = RankedTensorType::get(viewType.getShape(), viewType.getElementType());
  Value tile = builder.create<ir::TileLoadOp>(loc, type, view, ValueRange{zero}, sizes, Value(), true);
  Value before = builder.create<ir::ScanOp>(loc, type, scan.getKind(), tile, 0, true, Value(), Value());
  builder.create<ir::TileStoreOp>(loc, before, kernel_.getBody().getArgument(carries), ValueRange{zero}, true);
}

void PhaseBuilder::emitScanPiece(ir::ScanOp scan, unsigned carries) {
  Location loc = scan.getLoc();
  Value wide = widen(get(scan.getValue()));
  Value own =
      builder.create<ir::ScanOp>(loc, wide.getType(), scan.getKind(), wide, 0, scan.getExclusive(), Value(), Value());
  Value block = builder.create<ir::BlockIdOp>(loc, builder.getIndexType(), ir::Axis::X);
  Value carry = builder.create<ir::LoadOp>(loc, getElementTypeOrSelf(wide.getType()),
                                           kernel_.getBody().getArgument(carries), ValueRange{block}, Value(), false);
  Value before = builder.create<ir::BroadcastOp>(loc, wide.getType(), carry, builder.getDenseI64ArrayAttr({}),
                                                 sizes(scan.getResult()));
  Value result = combineTiles(builder, loc, scan.getKind(), before, own);
  mapping_.map(scan.getResult(), narrow(result, typeOf(scan.getResult())));
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
