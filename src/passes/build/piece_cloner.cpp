#include "passes/build/piece_cloner.h"

#include "ir/index_cast.h"
#include "ir/tile_sizes.h"
#include "passes/plan/clusters.h"

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

/// `isExtent`: neither operand is negative.
static Value emitOperator(OpBuilder& builder, Location loc, SizeOp op, bool isExtent, Value lhs, Value rhs) {
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
  // What looks for minima of extents knows them without a sign.
  case SizeOp::Min:
    return isExtent ? Value(builder.create<arith::MinUIOp>(loc, lhs, rhs))
                    : Value(builder.create<arith::MinSIOp>(loc, lhs, rhs));
  case SizeOp::Max:
    return isExtent ? Value(builder.create<arith::MaxUIOp>(loc, lhs, rhs))
                    : Value(builder.create<arith::MaxSIOp>(loc, lhs, rhs));
  case SizeOp::Equal: return compare(arith::CmpIPredicate::eq);
  case SizeOp::Less: return compare(arith::CmpIPredicate::slt);
  case SizeOp::And:
  case SizeOp::Or: {
    Value zero = builder.create<arith::ConstantIndexOp>(loc, 0);
    auto isTrue = [&](Value value) -> Value {
      return builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, value, zero);
    };
    Value a = isTrue(lhs), b = isTrue(rhs);
    Value bit = op == SizeOp::And ? Value(builder.create<arith::AndIOp>(loc, a, b))
                                  : Value(builder.create<arith::OrIOp>(loc, a, b));
    return builder.create<arith::IndexCastUIOp>(loc, builder.getIndexType(), bit);
  }
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
    if (node.op == SizeOp::Select) {
      Value zero = builder.create<arith::ConstantIndexOp>(loc, 0);
      Value holds = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, operands[0], zero);
      return builder.create<arith::SelectOp>(loc, holds, operands[1], operands[2]);
    }
    const bool isExtent =
        llvm::all_of(node.operands, [](const size::Node* operand) { return !operand || operand->range.low >= 0; });
    return emitOperator(builder, loc, node.op, isExtent, operands[0], operands[1]);
  });
}

PieceCloner::PieceCloner(ir::KernelOp kernel, const Axes& axes)
    : builder(kernel.getContext()), kernel_(kernel), axes_(axes) {}

Value PieceCloner::constant(Location loc, int64_t value) { return builder.create<arith::ConstantIndexOp>(loc, value); }

RankedTensorType PieceCloner::slicedType(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, axis] : llvm::enumerate(axes_.of(value)))
    if (size_.contains(axis))
      shape[dim] = ShapedType::kDynamic;
  return RankedTensorType::get(shape, type.getElementType());
}

Type PieceCloner::typeOf(Value value) const {
  return isa<RankedTensorType>(value.getType()) ? Type(slicedType(value)) : value.getType();
}

SmallVector<Value> PieceCloner::shift(OperandRange offsets, Value tile) {
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

SmallVector<Value> PieceCloner::sizes(Value tile) {
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

SmallVector<Value> PieceCloner::offsets(Value tile) {
  SmallVector<Value> result;
  for (Axis axis : axes_.of(tile)) {
    Value own = offset_.lookup(axis);
    result.push_back(own ? own : constant(tile.getLoc(), 0));
  }
  return result;
}

Value PieceCloner::get(Value value) {
  if (Value known = mapping_.lookupOrNull(value))
    return known;
  Value result = provide(value);
  if (!result) {
    Operation* producer = value.getDefiningOp();
    VORTEX_CHECK(producer, "a block argument is used before its region is cloned");
    result = clone(producer)->getResult(cast<OpResult>(value).getResultNumber());
  }
  mapping_.map(value, result);
  return result;
}

Operation* PieceCloner::clone(Operation* op) {
  Location loc = op->getLoc();
  if (op->getNumRegions() != 0)
    return cloneRegions(op);
  if (auto load = dyn_cast<ir::TileLoadOp>(op))
    return builder.create<ir::TileLoadOp>(loc, slicedType(load.getResult()), get(load.getView()),
                                          shift(load.getOffsets(), load.getResult()), sizes(load.getResult()),
                                          load.getOther() ? get(load.getOther()) : Value(), load.getInbounds());
  if (auto store = dyn_cast<ir::TileStoreOp>(op))
    return builder.create<ir::TileStoreOp>(loc, get(store.getValue()), get(store.getView()),
                                           shift(store.getOffsets(), store.getValue()), store.getInbounds());
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
    auto piece = builder.create<ir::SliceOp>(loc, slicedType(slice.getResult()), get(slice.getValue()), offsets,
                                             sizes(slice.getResult()), slice.getDroppedAttr());
    piece->setDiscardableAttrs(slice->getDiscardableAttrDictionary());
    return piece;
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
  return cloneGeneric(op);
}

/// Of its pieces, with empty regions.
Operation* PieceCloner::cloneGeneric(Operation* op) {
  OperationState state(op->getLoc(), op->getName());
  for (Value operand : op->getOperands())
    state.operands.push_back(get(operand));
  for (Value result : op->getResults())
    state.types.push_back(typeOf(result));
  state.attributes = llvm::to_vector(op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (unsigned i = 0; i < op->getNumRegions(); ++i)
    state.addRegion();
  return builder.create(state);
}

/// Axes that only the result has are cut out of the whole reshaped tile.
Operation* PieceCloner::cloneReshape(ir::ReshapeOp op) {
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

Operation* PieceCloner::cloneRegions(Operation* op) {
  // Values from outside are made before the loop, so that they dominate every use.
  Clusters::forEachOperand(op, [&](Value value) { get(value); });
  Operation* copy = cloneGeneric(op);
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

}  // namespace vortex::passes
