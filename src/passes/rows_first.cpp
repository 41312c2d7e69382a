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

void reduceRowsFirst(ir::ReduceOp reduce) {
  auto type = cast<RankedTensorType>(reduce.getValue().getType());
  ArrayRef<int64_t> dims = reduce.getDims(), before = dims;
  auto rows = static_cast<size_t>(type.getRank());
  while (!before.empty() && before.back() + 1 == static_cast<int64_t>(rows)) {
    before = before.drop_back();
    --rows;
  }
  if (before.empty() || before.size() == dims.size() || !hasPlannedRows(reduce, rows))
    return;
  OpBuilder builder(reduce);
  const Location loc = reduce.getLoc();
  const Type element = type.getElementType(), wide = accumulatorType(element);  // narrow floats are rounded once
  auto reduced = [&](Value tile, RankedTensorType to, ArrayRef<int64_t> along) {
    auto made = builder.create<ir::ReduceOp>(loc, to, reduce.getKind(), tile, along);
    made->setDiscardableAttrs(reduce->getDiscardableAttrDictionary());
    return made.getResult();
  };
  Value tile = reduce.getValue();
  if (wide != element)
    tile = builder.create<arith::ExtFOp>(loc, type.clone(wide), tile);
  tile = reduced(tile, RankedTensorType::get(type.getShape().take_front(rows), wide), dims.drop_front(before.size()));
  tile = reduced(tile, cast<RankedTensorType>(reduce.getType()).clone(wide), before);
  if (wide != element)
    tile = builder.create<arith::TruncFOp>(loc, reduce.getType(), tile);
  reduce.replaceAllUsesWith(tile);
  reduce.erase();
}

}  // namespace

void reduceRowsFirst(ir::KernelOp kernel) {
  for (auto reduce : llvm::to_vector(kernel.getBody().front().getOps<ir::ReduceOp>()))
    if (isa<RankedTensorType>(reduce.getType()))
      reduceRowsFirst(reduce);
}

}  // namespace vortex::passes
