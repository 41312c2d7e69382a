#include "passes/rows_first.h"

#include "ir/tile_sizes.h"
#include "passes/plan/entry_arguments.h"
#include "passes/plan/size_expression.h"

namespace vortex::passes {

using namespace mlir;

namespace {

/// What the rows leave can be a tensor in memory, as their number is known before the launch.
bool hasPlannedRows(ir::ReduceOp reduce, size_t rows) {
  SmallVector<OpFoldResult> sizes = ir::tileSizes(reduce.getValue());
  return llvm::all_of(ArrayRef(sizes).take_front(rows), [](OpFoldResult size) { return size && sizeExpression(size); });
}

/// Dimensions before the last that stays, and those behind it: the rows. Nothing: one of both is empty, or the launch does not know the extents.
struct Sides {
  ArrayRef<int64_t> before, rows;
  size_t first = 0;  ///< dimension of the rows
};

std::optional<Sides> sidesOf(ir::ReduceOp reduce) {
  auto type = cast<RankedTensorType>(reduce.getValue().getType());
  ArrayRef<int64_t> dims = reduce.getDims();
  Sides sides{dims, {}, static_cast<size_t>(type.getRank())};
  while (!sides.before.empty() && sides.before.back() + 1 == static_cast<int64_t>(sides.first)) {
    sides.before = sides.before.drop_back();
    --sides.first;
  }
  sides.rows = dims.drop_front(sides.before.size());
  if (sides.before.empty() || sides.rows.empty() || !hasPlannedRows(reduce, sides.first))
    return std::nullopt;
  return sides;
}

std::vector<ir::ReduceOp> reductionsOfBothSides(ir::KernelOp kernel) {
  std::vector<ir::ReduceOp> found;
  for (auto reduce : kernel.getBody().front().getOps<ir::ReduceOp>())
    if (isa<RankedTensorType>(reduce.getType()) && sidesOf(reduce))
      found.push_back(reduce);
  return found;
}

/// Along `first`, then along what is left of `second`.
void reduceInTurn(ir::ReduceOp reduce, ArrayRef<int64_t> first, ArrayRef<int64_t> second) {
  auto type = cast<RankedTensorType>(reduce.getValue().getType());
  OpBuilder builder(reduce);
  const Location loc = reduce.getLoc();
  const Type element = type.getElementType(), wide = accumulatorType(element);  // narrow floats are rounded once
  auto reduced = [&](Value tile, ArrayRef<int64_t> along) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(tile.getType()).getShape();
    SmallVector<int64_t> kept;
    for (auto [dim, extent] : llvm::enumerate(shape))
      if (!llvm::is_contained(along, static_cast<int64_t>(dim)))
        kept.push_back(extent);
    auto made = builder.create<ir::ReduceOp>(loc, RankedTensorType::get(kept, wide), reduce.getKind(), tile, along);
    made->setDiscardableAttrs(reduce->getDiscardableAttrDictionary());
    return made.getResult();
  };
  Value tile = reduce.getValue();
  if (wide != element)
    tile = builder.create<arith::ExtFOp>(loc, type.clone(wide), tile);
  SmallVector<int64_t> rest;
  for (int64_t dim : second)
    rest.push_back(dim - llvm::count_if(first, [&](int64_t gone) { return gone < dim; }));
  tile = reduced(reduced(tile, first), rest);
  if (wide != element)
    tile = builder.create<arith::TruncFOp>(loc, reduce.getType(), tile);
  reduce.replaceAllUsesWith(tile);
  reduce.erase();
}

}  // namespace

void reduceRowsFirst(ir::KernelOp kernel) {
  for (ir::ReduceOp reduce : reductionsOfBothSides(kernel)) {
    const Sides sides = *sidesOf(reduce);
    reduceInTurn(reduce, SmallVector<int64_t>(sides.rows), SmallVector<int64_t>(sides.before));
  }
}

void reduceColumnsFirst(ir::KernelOp kernel) {
  for (ir::ReduceOp reduce : reductionsOfBothSides(kernel)) {
    const Sides sides = *sidesOf(reduce);
    reduceInTurn(reduce, SmallVector<int64_t>(sides.before), SmallVector<int64_t>(sides.rows));
  }
}

ir::SizeAttr areColumnsCheaper(ir::KernelOp kernel) {
  // Rows of one result: what columns leave is written and read once, at most 6 % of what they read. Long rows keep a block busy (H200, variances of
  // 64 × 256 × 4096: 0.84 of copy by rows, 0.79 by columns; of 256 × 64 × 3136 0.62 and 0.81).
  constexpr int64_t kMany = 32, kLong = 4096;
  constexpr int64_t kShort = 128;  // elements of a row: what a warp takes of f32 at a time
  constexpr int64_t kPerRow = 32;  // elements that a row's result and its shuffles cost about as much as
  ir::SizeAttr all;
  if (kernel.walk([](ir::DotOp) { return WalkResult::interrupt(); }).wasInterrupted())
    return all;
  auto size = [&](int64_t value) { return ir::sizeConstant(kernel.getContext(), value); };
  for (ir::ReduceOp reduce : reductionsOfBothSides(kernel)) {
    const Sides sides = *sidesOf(reduce);
    SmallVector<OpFoldResult> sizes = ir::tileSizes(reduce.getValue());
    auto extent = [&](ArrayRef<int64_t> dims) {
      ir::SizeAttr product = size(1);
      for (int64_t dim : dims) {
        OpFoldResult known = sizes[static_cast<size_t>(dim)];
        ir::SizeAttr one = known ? sizeExpression(known) : ir::SizeAttr();
        product = one && product ? ir::sizeBinary(size::Op::Mul, product, one) : ir::SizeAttr();
      }
      return product;
    };
    ir::SizeAttr row = extent(sides.rows), rows = extent(sides.before);
    if (!row || !rows)
      return {};
    auto less = [](ir::SizeAttr a, ir::SizeAttr b) { return ir::sizeBinary(size::Op::Less, a, b); };
    ir::SizeAttr areShort = ir::sizeBinary(size::Op::And, less(row, size(kShort)),
                                           less(row, ir::sizeBinary(size::Op::Mul, rows, size(kPerRow))));
    ir::SizeAttr areMany = ir::sizeBinary(size::Op::And, less(size(kMany - 1), rows), less(row, size(kLong)));
    ir::SizeAttr isCheaper = ir::sizeBinary(size::Op::Max, areMany, areShort);
    all = all ? ir::sizeBinary(size::Op::And, all, isCheaper) : isCheaper;
  }
  return all;
}

}  // namespace vortex::passes
