#include "passes/tile_stretch.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/IR/IRMapping.h>
#include <mlir/IR/Matchers.h>

namespace vortex::passes {

using mlir::Value;

Value TileStretch::of(Value tile, int64_t dim) {
  if (Value known = made_.lookup({tile, dim}))
    return known;
  mlir::Operation* op = tile.getDefiningOp();
  Value made = op ? make(op, dim) : Value();
  if (made)
    made_[{tile, dim}] = made;
  return made;
}

Value TileStretch::make(mlir::Operation* op, int64_t dim) {
  if (auto load = mlir::dyn_cast<ir::TileLoadOp>(op))
    return this->load(load, dim);
  if (auto broadcast = mlir::dyn_cast<ir::BroadcastOp>(op))
    return this->broadcast(broadcast, dim);
  if (mlir::isa<mlir::arith::ConstantOp>(op))
    return constant(op, dim);
  if (auto reshape = mlir::dyn_cast<ir::ReshapeOp>(op))
    return this->reshape(reshape, dim);
  if (auto transpose = mlir::dyn_cast<ir::TransposeOp>(op)) {
    Value source = of(transpose.getValue(), transpose.getPermutation()[dim]);
    return source ? builder_.create<ir::TransposeOp>(op->getLoc(), stretched(transpose, dim), source,
                                                     transpose.getPermutation())
                  : Value();
  }
  return ir::isElementwise(op) && op->getNumResults() == 1 ? elementwise(op, dim) : Value();
}

mlir::RankedTensorType TileStretch::stretched(Value tile, int64_t dim) const {
  auto type = mlir::cast<mlir::RankedTensorType>(tile.getType());
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape[dim] = mlir::ShapedType::kDynamic;
  return mlir::RankedTensorType::get(shape, type.getElementType());
}

std::optional<llvm::SmallVector<Value>> TileStretch::sizes(Value tile, mlir::OperandRange sizes, int64_t dim) {
  auto type = mlir::cast<mlir::RankedTensorType>(tile.getType());
  llvm::SmallVector<Value> result;
  size_t next = 0;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    bool isDynamic = type.isDynamicDim(i);
    Value old = isDynamic ? sizes[next++] : Value();
    if (!isDynamic && i != dim)
      continue;
    Value size = i == dim ? extent_ : rules_.keep(old);
    if (!size)
      return std::nullopt;
    result.push_back(size);
  }
  return result;
}

Value TileStretch::load(ir::TileLoadOp op, int64_t dim) {
  std::optional<TileWindow> window = rules_.window(op);
  auto extents = sizes(op.getResult(), op.getSizes(), dim);
  auto rank = mlir::cast<mlir::RankedTensorType>(op.getType()).getRank();
  if (!window || !extents || static_cast<int64_t>(window->offsets.size()) != rank)
    return {};
  llvm::SmallVector<Value> offsets;
  for (auto [i, offset] : llvm::enumerate(window->offsets)) {
    offsets.push_back(static_cast<int64_t>(i) == dim ? rules_.start(op, dim) : rules_.keep(offset));
    if (!offsets.back())
      return {};
  }
  Value view = rules_.keep(window->view), other = window->other ? rules_.keep(window->other) : Value();
  if (!view || (window->other && !other))
    return {};
  auto made = builder_.create<ir::TileLoadOp>(op.getLoc(), stretched(op, dim), view, offsets, *extents, other,
                                              window->inbounds);
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return made;
}

Value TileStretch::broadcast(ir::BroadcastOp op, int64_t dim) {
  auto extents = sizes(op.getResult(), op.getSizes(), dim);
  if (!extents)
    return {};
  const auto* at = llvm::find(op.getDims(), dim);
  auto type = mlir::dyn_cast<mlir::RankedTensorType>(op.getValue().getType());
  bool repeats = at == op.getDims().end() || type.getDimSize(at - op.getDims().begin()) == 1;
  Value source = repeats ? rules_.keep(op.getValue()) : of(op.getValue(), at - op.getDims().begin());
  return source ? builder_.create<ir::BroadcastOp>(op.getLoc(), stretched(op, dim), source, op.getDims(), *extents)
                : Value();
}

Value TileStretch::constant(mlir::Operation* op, int64_t dim) {
  mlir::SplatElementsAttr splat;
  if (!mlir::matchPattern(op, mlir::m_Constant(&splat)))
    return {};
  auto element = mlir::cast<mlir::TypedAttr>(splat.getSplatValue<mlir::Attribute>());
  Value scalar = builder_.create<mlir::arith::ConstantOp>(op->getLoc(), element);
  return builder_.create<ir::BroadcastOp>(op->getLoc(), stretched(op->getResult(0), dim), scalar,
                                          llvm::ArrayRef<int64_t>(), mlir::ValueRange(extent_));
}

/// Dimensions of extent one come and go, nothing else changes.
Value TileStretch::reshape(ir::ReshapeOp op, int64_t dim) {
  auto from = mlir::cast<mlir::RankedTensorType>(op.getValue().getType());
  auto to = mlir::cast<mlir::RankedTensorType>(op.getType());
  auto others = [](mlir::RankedTensorType type) {
    llvm::SmallVector<int64_t> dims;
    for (int64_t i = 0; i < type.getRank(); ++i)
      if (type.getDimSize(i) != 1)
        dims.push_back(i);
    return dims;
  };
  llvm::SmallVector<int64_t> left = others(from), right = others(to);
  auto* at = llvm::find(right, dim);
  bool isSame = left.size() == right.size() && from.hasStaticShape() && at != right.end() &&
                llvm::all_of(llvm::zip(left, right), [&](auto pair) {
                  return from.getDimSize(std::get<0>(pair)) == to.getDimSize(std::get<1>(pair));
                });
  Value source = isSame ? of(op.getValue(), left[at - right.begin()]) : Value();
  return source ? builder_.create<ir::ReshapeOp>(op.getLoc(), stretched(op, dim), source, mlir::ValueRange(extent_))
                : Value();
}

Value TileStretch::elementwise(mlir::Operation* op, int64_t dim) {
  mlir::IRMapping mapping;
  for (Value operand : op->getOperands()) {
    bool isTile = mlir::isa<mlir::RankedTensorType>(operand.getType());
    Value made = isTile ? of(operand, dim) : rules_.keep(operand);
    if (!made)
      return {};
    mapping.map(operand, made);
  }
  mlir::Operation* made = builder_.clone(*op, mapping);
  made->getResult(0).setType(stretched(op->getResult(0), dim));
  return made->getResult(0);
}

}  // namespace vortex::passes
