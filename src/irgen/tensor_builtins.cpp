// Builtins on tiles: reductions, softmax, scans, reshaping, elementwise functions.
#include "irgen/emitter.h"

#include "ir/tile_sizes.h"

namespace vortex::irgen {

using lang::Builtin;
using lang::Expr;
using lang::Scalar;
using mlir::Location;
using mlir::RankedTensorType;
using mlir::Value;
namespace arith = mlir::arith;

Value Emitter::evalTensorBuiltin(const Expr& expr) {
  Location at = loc(expr);
  Scalar kind = wideScalar(scalarOf(expr.type));
  RankedTensorType type = types_.tile(expr.type, types_.scalar(kind));
  switch (expr.builtin) {
  case Builtin::Zeros: return broadcastScalar(at, math_.zero(at, types_.scalar(kind)), expr.type);
  case Builtin::Full: {
    const Expr& value = *expr.args.front();
    return broadcastScalar(at, math_.cast(at, evalScalar(value), scalarOf(value.type), kind), expr.type);
  }
  case Builtin::Arange: return evalArange(expr);
  case Builtin::Transpose: return b_.create<ir::TransposeOp>(at, type, evalTile(*expr.args[0]), expr.ints);
  case Builtin::Reshape:
    return b_.create<ir::ReshapeOp>(at, type, evalTile(*expr.args[0]), dynamicSizes(at, expr.type));
  case Builtin::ReduceSum:
  case Builtin::ReduceProd:
  case Builtin::ReduceMax:
  case Builtin::ReduceMin:
  case Builtin::ReduceMean: return evalReduction(expr);
  case Builtin::Softmax: return evalSoftmax(expr);
  case Builtin::CumSum: {
    Value value = evalTile(*expr.args[0]);
    return b_.create<ir::ScanOp>(at, addCombine(kind), value, expr.ints[0], false, Value(), Value());
  }
  case Builtin::MaskUpperTriangle: return evalMask(expr);
  case Builtin::Copy: return evalTile(*expr.args[0]);
  case Builtin::ToBits: return math_.reinterpret(at, evalRoundedTile(*expr.args[0]), scalarOf(expr.type));
  case Builtin::FromBits: {
    Scalar stored = scalarOf(expr.type);
    return wideTile(at, math_.reinterpret(at, evalTile(*expr.args[0]), stored), stored);
  }
  default: break;
  }
  llvm::SmallVector<Value> args;
  for (const Expr* arg : expr.args) {
    Value value = stripRef(arg->type)->isTensor() ? evalTile(*arg) : Value();
    if (!value) {
      Scalar own = scalarOf(arg->type);
      value = broadcastScalar(at, math_.cast(at, evalScalar(*arg), own, wideScalar(own)), expr.type);
    }
    if (!args.empty())
      value =
          adaptTile(at, value,
                    llvm::cast<RankedTensorType>(args[0].getType()).clone(mlir::getElementTypeOrSelf(value.getType())));
    args.push_back(value);
  }
  Scalar operandKind = wideScalar(scalarOf(expr.args[expr.builtin == Builtin::Select ? 1 : 0]->type));
  if (Value result = math_.call(at, expr.builtin, operandKind, args)) {
    bool predicate = expr.builtin == Builtin::IsNan || expr.builtin == Builtin::IsInf;
    return predicate ? result : math_.cast(at, result, operandKind, kind);
  }
  return unsupported(expr, llvm::Twine("`") + std::string(spelling(expr.builtin)) + "` on tensors in a kernel")
      .leaves[0];
}

static ir::Combine reductionKind(Builtin builtin, Scalar kind) {
  switch (builtin) {
  case Builtin::ReduceProd: return mulCombine(kind);
  case Builtin::ReduceMax: return maxCombine(kind);
  case Builtin::ReduceMin: return minCombine(kind);
  default: return addCombine(kind);
  }
}

/// A scalar if everything is reduced, else a tile; evaluated in the wide type.
Value Emitter::evalReduction(const Expr& expr) {
  Location at = loc(expr);
  const Expr& operand = *expr.args[0];
  lang::Type tensor = stripRef(operand.type);
  Scalar kind = wideScalar(scalarOf(tensor));
  Value value = evalTile(operand);
  auto original = llvm::cast<RankedTensorType>(value.getType());
  llvm::SmallVector<int64_t> dims(expr.ints.begin(), expr.ints.end());
  if (dims.empty())
    for (int64_t dim = 0; dim < original.getRank(); ++dim)
      dims.push_back(dim);
  llvm::SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < original.getRank(); ++dim)
    if (!llvm::is_contained(dims, dim))
      shape.push_back(original.getDimSize(dim));
  mlir::Type element = original.getElementType();
  mlir::Type type = shape.empty() ? element : RankedTensorType::get(shape, element);
  Value result = b_.create<ir::ReduceOp>(at, type, reductionKind(expr.builtin, kind), value, dims);
  if (expr.builtin == Builtin::ReduceMean) {
    Value count;
    for (int64_t dim : dims) {
      Value extent = dimValue(at, tensor->shape[dim]);
      count = count ? Value(b_.create<arith::MulIOp>(at, count, extent)) : extent;
    }
    Value divisor = math_.cast(at, count ? count : math_.index(at, 1), Scalar::Usize, kind);
    if (auto tile = llvm::dyn_cast<RankedTensorType>(result.getType())) {
      llvm::SmallVector<Value> all = ir::tileSizeValues(b_, at, result), sizes;
      for (int64_t dim = 0; dim < tile.getRank(); ++dim)
        if (tile.isDynamicDim(dim))
          sizes.push_back(all[dim]);
      divisor = b_.create<ir::BroadcastOp>(at, tile, divisor, llvm::ArrayRef<int64_t>{}, sizes);
    }
    result = math_.binary(at, lang::BinaryOp::Div, kind, result, divisor);
  }
  if (!isTileType(expr.type) || stripRef(expr.type)->rank() == shape.size())
    return result;
  RankedTensorType kept = types_.tile(expr.type, element);  // reduced dimensions stay with extent one
  if (shape.empty())
    return b_.create<ir::BroadcastOp>(at, kept, result, llvm::ArrayRef<int64_t>{}, dynamicSizes(at, expr.type));
  return b_.create<ir::ReshapeOp>(at, kept, result, dynamicSizes(at, expr.type));
}

/// `reduced` lacks dimension `dim` of `original`; repeats it along that dimension.
Value Emitter::keepDims(Location loc, Value reduced, RankedTensorType original, int64_t dim,
                        llvm::ArrayRef<Value> sizes) {
  llvm::SmallVector<int64_t> dims;
  for (int64_t i = 0; i < original.getRank(); ++i)
    if (i != dim)
      dims.push_back(i);
  return b_.create<ir::BroadcastOp>(loc, original, reduced, dims, sizes);
}

Value Emitter::evalSoftmax(const Expr& expr) {
  Location at = loc(expr);
  Scalar kind = wideScalar(scalarOf(expr.type));
  Value value = evalTile(*expr.args[0]);
  auto type = llvm::cast<RankedTensorType>(value.getType());
  int64_t dim = expr.ints[0];
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  mlir::Type element = type.getElementType();
  mlir::Type reducedType = shape.empty() ? element : mlir::Type(RankedTensorType::get(shape, element));
  llvm::SmallVector<Value> sizes = dynamicSizes(at, expr.args[0]->type);
  Value largest = b_.create<ir::ReduceOp>(at, reducedType, maxCombine(kind), value, llvm::ArrayRef<int64_t>{dim});
  Value shifted = math_.binary(at, lang::BinaryOp::Sub, kind, value, keepDims(at, largest, type, dim, sizes));
  Value exponential = math_.call(at, Builtin::Exp, kind, shifted);
  Value sum = b_.create<ir::ReduceOp>(at, reducedType, addCombine(kind), exponential, llvm::ArrayRef<int64_t>{dim});
  // One division per row: the sum is at least 1, so its reciprocal is exact to half an ULP and the product to 1.5.
  Value reciprocal = math_.binary(at, lang::BinaryOp::Div, kind, math_.constantLike(at, sum, 1), sum);
  return math_.binary(at, lang::BinaryOp::Mul, kind, exponential, keepDims(at, reciprocal, type, dim, sizes));
}

/// Elements right of the diagonal of the last two dimensions become the value.
/// Row numbers plus the mask's offset, which counts for no more than the extents: the sums are as small as these.
Value Emitter::offsetRows(const Expr& expr, Value row) {
  Location at = loc(expr);
  lang::Type tensor = stripRef(expr.type);
  Value offset = b_.create<arith::IndexCastOp>(at, b_.getIndexType(), evalScalar(*expr.args[2]));
  Value rows = dimValue(at, tensor->shape[tensor->rank() - 2]),
        columns = dimValue(at, tensor->shape[tensor->rank() - 1]);
  Value least = b_.create<arith::SubIOp>(at, b_.create<arith::ConstantIndexOp>(at, 0), rows);
  offset = b_.create<arith::MaxSIOp>(at, b_.create<arith::MinSIOp>(at, offset, columns), least);
  return b_.create<arith::AddIOp>(at, row, broadcastScalar(at, offset, expr.type));
}

Value Emitter::evalMask(const Expr& expr) {
  Location at = loc(expr);
  Value value = evalTile(*expr.args[0]);
  auto type = llvm::cast<RankedTensorType>(value.getType());
  RankedTensorType indexType = type.clone(b_.getIndexType());
  llvm::SmallVector<Value> sizes = dynamicSizes(at, expr.type);
  Value row = b_.create<ir::IotaOp>(at, indexType, type.getRank() - 2, sizes);
  Value column = b_.create<ir::IotaOp>(at, indexType, type.getRank() - 1, sizes);
  Value above = expr.args.size() > 2
                    ? b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::sgt, column, offsetRows(expr, row))
                    : b_.create<arith::CmpIOp>(at, arith::CmpIPredicate::ugt, column, row);
  const Expr& fill = *expr.args[1];
  Scalar kind = wideScalar(scalarOf(expr.type));
  Value other = stripRef(fill.type)->isTensor()
                    ? evalTile(fill)
                    : broadcastScalar(at, math_.cast(at, evalScalar(fill), scalarOf(fill.type), kind), expr.type);
  return b_.create<arith::SelectOp>(at, above, other, value);
}

/// arange(n), arange(start, end), arange(start, end, step)
Value Emitter::evalArange(const Expr& expr) {
  Location at = loc(expr);
  Scalar kind = scalarOf(expr.type), compute = wideScalar(kind);
  RankedTensorType indexType = types_.tile(expr.type, b_.getIndexType());
  Value position = b_.create<ir::IotaOp>(at, indexType, 0, dynamicSizes(at, expr.type));
  Value value = math_.cast(at, position, Scalar::Usize, compute);
  auto scalar = [&](const Expr& arg) {
    return broadcastScalar(at, math_.cast(at, evalScalar(arg), scalarOf(arg.type), compute), expr.type);
  };
  if (expr.args.size() > 2)
    value = math_.binary(at, lang::BinaryOp::Mul, compute, value, scalar(*expr.args[2]));
  if (expr.args.size() > 1)
    value = math_.binary(at, lang::BinaryOp::Add, compute, scalar(*expr.args[0]), value);
  return value;
}

}  // namespace vortex::irgen
