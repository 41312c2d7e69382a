// Tile expressions: elementwise arithmetic in f32 for narrow floats, broadcasting, products, loads and stores of whole tensors.
#include "irgen/emitter.h"

#include "ir/guarded_slice.h"
#include "ir/index_range.h"
#include "ir/product_marks.h"
#include "ir/tile_sizes.h"
#include "lang/sema/element.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace vortex::irgen {

using lang::Expr;
using lang::ExprKind;
using lang::Scalar;
using mlir::Location;
using mlir::Value;

static Scalar scalarOfElement(mlir::Type element, Scalar declared) {
  if (element.isF32())
    return Scalar::F32;
  if (element.isF64())
    return Scalar::F64;
  if (element.isF16())
    return Scalar::F16;
  if (element.isBF16())
    return Scalar::BF16;
  if (element.isFloat8E4M3FN())
    return Scalar::F8E4M3;
  if (element.isFloat8E5M2())
    return Scalar::F8E5M2;
  return declared;
}

/// The tile with the element type and static extents of `type`; float elements are rounded.
Value Emitter::adaptTile(Location loc, Value value, mlir::RankedTensorType type, Scalar kind) {
  mlir::Type element = mlir::getElementTypeOrSelf(value.getType());
  if (auto widened = value.getDefiningOp<mlir::arith::ExtFOp>())
    if (mlir::getElementTypeOrSelf(widened.getIn().getType()) == type.getElementType()) {
      value = widened.getIn();  // nothing was computed in between
      element = type.getElementType();
    }
  if (element != type.getElementType() && llvm::isa<mlir::FloatType>(element))
    value = math_.cast(loc, value, scalarOfElement(element, kind), scalarOfElement(type.getElementType(), kind));
  if (value.getType() == type)
    return value;
  auto actual = llvm::cast<mlir::RankedTensorType>(value.getType());
  VORTEX_CHECK(actual.getRank() == type.getRank() && actual.getElementType() == type.getElementType(),
               "tiles of different kinds meet");
  llvm::SmallVector<Value> all = ir::tileSizeValues(b_, loc, value), sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(all[dim]);
  return b_.create<ir::ReshapeOp>(loc, type, value, sizes);
}

Value Emitter::wideTile(Location loc, Value tile, Scalar kind) {
  mlir::Type element = mlir::getElementTypeOrSelf(tile.getType());
  Scalar actual = scalarOfElement(element, kind);
  return math_.cast(loc, tile, actual, wideScalar(actual));
}

llvm::SmallVector<Value> Emitter::dynamicSizes(Location loc, lang::Type type) {
  llvm::SmallVector<Value> sizes;
  for (const lang::DimExpr& dim : stripRef(type)->shape)
    if (mlir::ShapedType::isDynamic(types_.extent(dim)))
      sizes.push_back(dimValue(loc, dim));
  return sizes;
}

Value Emitter::broadcastScalar(Location loc, Value scalar, lang::Type type) {
  return b_.create<ir::BroadcastOp>(loc, types_.tile(type, scalar.getType()), scalar, llvm::ArrayRef<int64_t>{},
                                    dynamicSizes(loc, type));
}

Value Emitter::evalRoundedTile(const Expr& expr) {
  return adaptTile(loc(expr), evalTile(expr), types_.tile(expr.type));
}

Flat Emitter::evalTiles(const Expr& expr) {
  return lang::isStructTensor(stripRef(expr.type)) ? evalStructTile(expr) : Flat(evalTile(expr));
}

/// Whole tensors of structs are made, copied and rearranged; arithmetic is on their fields.
Flat Emitter::evalStructTile(const Expr& expr) {
  Location at = loc(expr);
  lang::Type type = stripRef(expr.type);
  if (parked_.count(&expr))
    return eval(expr);
  Flat result;
  auto eachPlane = [&](const Flat& operands, llvm::function_ref<Value(Value, mlir::RankedTensorType)> make) {
    for (auto [operand, plane] : llvm::zip(operands.leaves, types_.planes(type)))
      result.leaves.push_back(make(operand, types_.tile(type, types_.scalar(plane))));
  };
  bool isBuiltin = expr.kind == ExprKind::Builtin;
  if (isBuiltin && expr.builtin == lang::Builtin::Zeros) {
    for (Scalar plane : types_.planes(type))
      result.leaves.push_back(broadcastScalar(at, math_.zero(at, types_.scalar(plane)), type));
  } else if (isBuiltin && expr.builtin == lang::Builtin::Full) {
    eachPlane(eval(*expr.args[0]),
              [&](Value scalar, mlir::RankedTensorType) { return broadcastScalar(at, scalar, type); });
  } else if (isBuiltin && expr.builtin == lang::Builtin::Copy) {
    return evalStructTile(*expr.args[0]);
  } else if (isBuiltin && expr.builtin == lang::Builtin::Transpose) {
    eachPlane(evalStructTile(*expr.args[0]), [&](Value tile, mlir::RankedTensorType made) -> Value {
      return b_.create<ir::TransposeOp>(at, made, tile, expr.ints);
    });
  } else if (isBuiltin && expr.builtin == lang::Builtin::Reshape) {
    eachPlane(evalStructTile(*expr.args[0]), [&](Value tile, mlir::RankedTensorType made) -> Value {
      return b_.create<ir::ReshapeOp>(at, made, tile, dynamicSizes(at, type));
    });
  } else if (expr.kind == ExprKind::Slice && isTileType(stripRef(expr.args[0]->type))) {
    return unsupported(expr, "a part of a tensor of structs that is a value; name the tensor it is taken from");
  } else if (isBuiltin || expr.kind == ExprKind::Broadcast) {
    return unsupported(expr, "this operation on a whole tensor of structs; work on its fields, or element by element");
  } else {
    bool isControl = expr.kind == ExprKind::If || expr.kind == ExprKind::Block || expr.kind == ExprKind::Inline ||
                     expr.kind == ExprKind::Loop;
    Flat flat = isControl                        ? evalControl(expr)
                : expr.kind == ExprKind::Slice   ? evalSlice(expr)
                : expr.kind == ExprKind::Element ? load(at, place(expr))
                                                 : eval(expr);
    for (Value leaf : flat.leaves)
      result.leaves.push_back(llvm::isa<ir::ViewType>(leaf.getType()) ? loadTile(at, leaf, type) : leaf);
  }
  return result;
}

Value Emitter::evalTile(const Expr& expr) {
  Location at = loc(expr);
  Scalar stored = scalarOf(expr.type), kind = wideScalar(stored);
  if (parked_.count(&expr))
    return eval(expr).leaves[0];
  auto operand = [&](const Expr& arg) {
    return adaptTile(at, evalTile(arg), types_.tile(arg.type, types_.scalar(wideScalar(scalarOf(arg.type)))));
  };
  switch (expr.kind) {
  case ExprKind::Unary: return userUnary(expr, kind, operand(*expr.args[0]));
  case ExprKind::Binary: {
    Scalar operandKind = wideScalar(scalarOf(expr.args[0]->type));
    Value lhs = operand(*expr.args[0]), rhs = operand(*expr.args[1]);
    rhs = adaptTile(at, rhs,
                    llvm::cast<mlir::RankedTensorType>(lhs.getType()).clone(mlir::getElementTypeOrSelf(rhs.getType())));
    return userBinary(expr, expr.binaryOp, operandKind, lhs, rhs);
  }
  case ExprKind::Cast: {
    Scalar from = scalarOf(expr.args[0]->type);
    Value value = operand(*expr.args[0]);
    return wideTile(at, math_.cast(at, value, wideScalar(from), stored), stored);  // an explicit rounding, and only one
  }
  case ExprKind::Broadcast: {
    const Expr& arg = *expr.args[0];
    mlir::RankedTensorType type = types_.tile(expr.type, types_.scalar(kind));
    if (!stripRef(arg.type)->isTensor())
      return broadcastScalar(at, math_.cast(at, evalScalar(arg), scalarOf(arg.type), kind), expr.type);
    return b_.create<ir::BroadcastOp>(at, type, evalTile(arg), expr.ints, dynamicSizes(at, expr.type));
  }
  case ExprKind::Dot: return wideTile(at, evalDot(expr, {}), stored);
  case ExprKind::Builtin: return evalTensorBuiltin(expr);
  case ExprKind::Slice:
    if (lang::isFieldOfElements(expr)) {
      if (isMemoryTensor(expr.args[0]->type))
        return wideTile(at, loadTile(at, evalSlice(expr).leaves[0], expr.type), stored);
      Flat tiles = evalStructTile(*expr.args[0]);
      return wideTile(at, tiles.leaves[lang::scalarsBefore(stripRef(expr.args[0]->type)->elem, expr.ints[0])], stored);
    }
    if (isMemoryTensor(expr.args[0]->type))
      return wideTile(at, loadSlice(expr), stored);
    {
      SliceWindow parts = window(expr);
      llvm::SmallVector<Value> sizes;
      for (auto [dim, size] : llvm::enumerate(parts.sizes))
        if (mlir::ShapedType::isDynamic(parts.staticSizes[dim]))
          sizes.push_back(size);
      Value tile = evalTile(*expr.args[0]);
      auto slice = b_.create<ir::SliceOp>(at, types_.tile(expr.type, types_.scalar(kind)), tile, parts.offsets, sizes,
                                          parts.dropped);
      if (auto guarded = guardedDims(expr, parts); !guarded.empty())
        slice->setAttr(ir::kGuardedDims, b_.getDenseI64ArrayAttr(guarded));
      return slice;
    }
  case ExprKind::If:
  case ExprKind::Block:
  case ExprKind::Inline:
  case ExprKind::Loop: return evalControl(expr).leaves[0];
  case ExprKind::Int: return broadcastScalar(at, math_.integer(at, types_.scalar(kind), expr.intValue), expr.type);
  case ExprKind::Float: return broadcastScalar(at, math_.real(at, types_.scalar(kind), expr.floatValue), expr.type);
  default: break;
  }
  Flat flat = eval(expr);
  VORTEX_CHECK(flat.leaves.size() == 1, "a tensor has %zu values", flat.leaves.size());
  Value value = flat.leaves[0];
  if (llvm::isa<ir::ViewType>(value.getType()))
    value = loadTile(at, value, expr.type);
  return wideTile(at, value, stored);
}

/// Along which a part of a computed tensor may reach over an edge. A part that ends before it begins is empty, wherever that is: what is proven
/// holds where it is not.
llvm::SmallVector<int64_t> Emitter::guardedDims(const Expr& slice, const SliceWindow& parts) {
  llvm::SmallVector<int64_t> guarded;
  if (context_.guardOf(slice) != lang::Guard::Guarded)
    return guarded;
  using Kind = lang::SliceDim::Kind;
  const auto &from = stripRef(slice.args[0]->type)->shape, &to = stripRef(slice.type)->shape;
  size_t kept = 0;
  for (auto [dim, part] : llvm::enumerate(slice.slices)) {
    const lang::DimExpr size = part.kind == Kind::Index ? lang::DimExpr::constant(1) : to[kept++];
    bool isInside = part.kind == Kind::Full || (part.kind == Kind::Range && !part.end);
    if (auto begin = mlir::getConstantIntValue(parts.offsets[dim]); begin && !isInside) {
      const lang::DimExpr end = lang::DimExpr::add(lang::DimExpr::constant(*begin), size);
      isInside = isNotNegative(types_.fix(lang::DimExpr::sub(from[dim], end)));
    }
    if (!isInside || !ir::isNotNegative(parts.offsets[dim]))
      guarded.push_back(static_cast<int64_t>(dim));
  }
  return guarded;
}

/// Operands are rounded to their types; products and sums are in the accumulator's type.
Value Emitter::evalDot(const Expr& expr, Value acc) {
  Location at = loc(expr);
  Value lhs = evalRoundedTile(*expr.args[0]), rhs = evalRoundedTile(*expr.args[1]);
  Scalar from = scalarOf(expr.args[0]->type), to = scalarOf(expr.type);
  if (lang::isUnsigned(from) && lang::bitWidth(from) < lang::bitWidth(to))  // vx.dot extends the sign
    for (Value* operand : {&lhs, &rhs}) {
      auto type = llvm::cast<mlir::RankedTensorType>(operand->getType());
      *operand = b_.create<arith::ExtUIOp>(at, type.clone(types_.scalar(to)), *operand);
    }
  if (!acc) {
    Scalar kind = wideScalar(scalarOf(expr.type));
    acc = broadcastScalar(at, math_.zero(at, types_.scalar(kind)), expr.type);
  }
  auto dot = b_.create<ir::DotOp>(at, acc.getType(), lhs, rhs, acc);
  if (context_.function.kernel && context_.function.kernel->allowsTf32 && mlir::getElementTypeOrSelf(lhs).isF32())
    dot->setAttr("vx.tf32", b_.getUnitAttr());
  if (context_.function.kernel && context_.function.kernel->strict && mlir::getElementTypeOrSelf(lhs).isF32())
    dot->setAttr(ir::kOperandsAsWritten, b_.getUnitAttr());
  return dot;
}

//===-- memory ----------------------------------------------------------------------------------------------------===//

Value Emitter::loadTile(Location loc, Value view, lang::Type type) {
  auto viewType = llvm::cast<ir::ViewType>(view.getType());
  llvm::SmallVector<Value> sizes;
  llvm::SmallVector<Value> offsets =
      indicesIn(loc, view, llvm::SmallVector<Value>(viewType.getRank(), math_.index(loc, 0)));
  bool clamped = cutViews_.contains(view);
  type = stripRef(type);
  for (int64_t dim = 0; dim < viewType.getRank(); ++dim)
    if (mlir::ShapedType::isDynamic(types_.extent(type->shape[dim]))) {
      lang::DimExpr extent = types_.fix(type->shape[dim]);
      bool unknown = extent.hasOpaque() && !extents_.count(extent);
      sizes.push_back(unknown ? extentOf(loc, view, static_cast<unsigned>(dim)) : dimValue(loc, extent));
    }
  mlir::RankedTensorType tile = types_.tile(type, viewType.getElementType());
  return b_.create<ir::TileLoadOp>(loc, tile, view, offsets, sizes, Value(), !clamped);
}

void Emitter::storeTile(Location loc, Value tile, Value view) {
  auto viewType = llvm::cast<ir::ViewType>(view.getType());
  auto type = llvm::cast<mlir::RankedTensorType>(tile.getType());
  tile = adaptTile(loc, tile, type.clone(viewType.getElementType()));
  llvm::SmallVector<Value> offsets =
      indicesIn(loc, view, llvm::SmallVector<Value>(viewType.getRank(), math_.index(loc, 0)));
  b_.create<ir::TileStoreOp>(loc, tile, view, offsets, !cutViews_.contains(view));
}

/// The slice at its full rank: what is outside the tensor reads as zero.
Value Emitter::loadSlice(const Expr& slice) {
  Location at = loc(slice);
  Value view = evalView(*slice.args[0]);
  SliceWindow parts = window(slice);
  llvm::SmallVector<Value> sizes;
  for (auto [dim, size] : llvm::enumerate(parts.sizes))
    if (mlir::ShapedType::isDynamic(parts.staticSizes[dim]))
      sizes.push_back(size);
  mlir::Type element = llvm::cast<ir::ViewType>(view.getType()).getElementType();
  parts.offsets = indicesIn(at, view, parts.offsets);
  bool inside = context_.guardOf(slice) != lang::Guard::Guarded && !cutViews_.contains(view);
  auto load = b_.create<ir::TileLoadOp>(at, mlir::RankedTensorType::get(parts.staticSizes, element), view,
                                        parts.offsets, sizes, Value(), inside);
  noteSlice(load, slice);
  Value tile = load;
  if (parts.dropped.empty())
    return tile;
  llvm::SmallVector<Value> kept;
  llvm::SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(parts.sizes))
    if (!llvm::is_contained(parts.dropped, static_cast<int64_t>(dim))) {
      shape.push_back(parts.staticSizes[dim]);
      if (mlir::ShapedType::isDynamic(parts.staticSizes[dim]))
        kept.push_back(size);
    }
  return b_.create<ir::ReshapeOp>(at, mlir::RankedTensorType::get(shape, element), tile, kept);
}

void Emitter::storeSlice(const Expr& slice, Value tile, Scalar kind) {
  Location at = loc(slice);
  Value view = evalView(*slice.args[0]);
  SliceWindow parts = window(slice);
  mlir::Type element = llvm::cast<ir::ViewType>(view.getType()).getElementType();
  if (!llvm::isa<mlir::RankedTensorType>(tile.getType()))
    tile = broadcastScalar(at, tile, slice.type);
  tile = adaptTile(at, tile, llvm::cast<mlir::RankedTensorType>(tile.getType()).clone(element), kind);
  if (!parts.dropped.empty()) {
    llvm::SmallVector<Value> sizes;
    for (auto [dim, size] : llvm::enumerate(parts.sizes))
      if (mlir::ShapedType::isDynamic(parts.staticSizes[dim]))
        sizes.push_back(size);
    tile = b_.create<ir::ReshapeOp>(at, mlir::RankedTensorType::get(parts.staticSizes, element), tile, sizes);
  }
  parts.offsets = indicesIn(at, view, parts.offsets);
  bool inside = context_.guardOf(slice) != lang::Guard::Guarded && !cutViews_.contains(view);
  auto store = b_.create<ir::TileStoreOp>(at, tile, view, parts.offsets, inside);
  noteSlice(store, slice);
}

}  // namespace vortex::irgen
