#include "passes/column_products.h"

#include "ir/tile_sizes.h"

namespace vortex::passes {

using namespace mlir;

namespace {

/// Those of `sizes` that the type leaves open.
SmallVector<Value> openSizes(RankedTensorType type, ArrayRef<Value> sizes) {
  SmallVector<Value> open;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (type.isDynamicDim(static_cast<unsigned>(dim)))
      open.push_back(size);
  return open;
}

Value widened(OpBuilder& builder, Location loc, Value tile, Type element) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getElementType() == element)
    return tile;
  return builder.create<arith::ExtFOp>(loc, RankedTensorType::get(type.getShape(), element), tile);
}

bool mayWiden(Type from, Type to) { return from == to || (isa<FloatType>(from) && isa<FloatType>(to)); }

/// The column as a row that stands under every row of `rows`.
Value repeatedColumn(OpBuilder& builder, Location loc, Value column, RankedTensorType rows, ArrayRef<Value> sizes) {
  auto type = cast<RankedTensorType>(column.getType());
  const int64_t rank = type.getRank();
  auto flat = RankedTensorType::get(type.getShape().drop_back(), type.getElementType());
  SmallVector<Value> flatSizes(sizes.begin(), sizes.end());
  flatSizes.erase(flatSizes.end() - 2);
  Value zero = builder.create<arith::ConstantIndexOp>(loc, 0);
  Value line = builder.create<ir::SliceOp>(loc, flat, column, SmallVector<Value>(static_cast<size_t>(rank), zero),
                                           openSizes(flat, flatSizes), SmallVector<int64_t>{rank - 1});
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  dims.push_back(rank - 1);
  auto repeated = RankedTensorType::get(rows.getShape(), type.getElementType());
  return builder.create<ir::BroadcastOp>(loc, repeated, line, dims, openSizes(repeated, sizes));
}

void sumRows(ir::DotOp dot) {
  auto result = cast<RankedTensorType>(dot.getType());
  const Type element = result.getElementType();
  const int64_t rank = result.getRank();
  auto elementOf = [](Value tile) { return cast<RankedTensorType>(tile.getType()).getElementType(); };
  if (result.getDimSize(static_cast<unsigned>(rank - 1)) != 1 || !mayWiden(elementOf(dot.getA()), element) ||
      !mayWiden(elementOf(dot.getB()), element))
    return;
  OpBuilder builder(dot);
  const Location loc = dot.getLoc();
  SmallVector<Value> sizes = ir::tileSizeValues(builder, loc, dot.getA());
  if (llvm::is_contained(sizes, Value()))
    return;
  Value rows = widened(builder, loc, dot.getA(), element);
  auto type = cast<RankedTensorType>(rows.getType());
  Value column = repeatedColumn(builder, loc, widened(builder, loc, dot.getB(), element), type, sizes);
  auto sums = RankedTensorType::get(type.getShape().drop_back(), element);
  const bool isFloat = isa<FloatType>(element);
  auto fused = arith::FastMathFlagsAttr::get(builder.getContext(), arith::FastMathFlags::contract);
  Value products = isFloat ? builder.create<arith::MulFOp>(loc, rows, column, fused).getResult()
                           : builder.create<arith::MulIOp>(loc, rows, column).getResult();
  Value sum = builder.create<ir::ReduceOp>(loc, sums, isFloat ? ir::Combine::AddF : ir::Combine::AddI, products,
                                           SmallVector<int64_t>{rank - 1});
  sum = builder.create<ir::BroadcastOp>(loc, result, sum, llvm::to_vector(llvm::seq<int64_t>(0, rank - 1)),
                                        openSizes(result, sizes));
  sum = isFloat ? builder.create<arith::AddFOp>(loc, dot.getAcc(), sum).getResult()
                : builder.create<arith::AddIOp>(loc, dot.getAcc(), sum).getResult();
  dot.replaceAllUsesWith(sum);
  dot.erase();
}

}  // namespace

void sumColumnProducts(ir::KernelOp kernel) {
  for (auto dot : llvm::to_vector(kernel.getBody().front().getOps<ir::DotOp>()))
    sumRows(dot);
}

}  // namespace vortex::passes
