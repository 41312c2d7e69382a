#include "passes/small_reductions.h"

#include "ir/combine.h"
#include "ir/tile_sizes.h"
#include "passes/plan/entry_arguments.h"

namespace vortex::passes {

using namespace mlir;

namespace {

constexpr int64_t kMost = 16, kMostOfRow = 8;

/// Of known extents, few elements each. `ofRows`: also of the last dimension alone.
bool isSmall(ir::ReduceOp reduce, bool ofRows) {
  auto type = cast<RankedTensorType>(reduce.getValue().getType());
  ArrayRef<int64_t> dims = reduce.getDims();
  if (!isa<RankedTensorType>(reduce.getType()) || dims.empty())
    return false;
  int64_t elements = 1;
  for (int64_t dim : dims) {
    const int64_t extent = type.getDimSize(static_cast<unsigned>(dim));
    if (ShapedType::isDynamic(extent) || extent == 0 || elements * extent > kMost)
      return false;
    elements *= extent;
  }
  const bool isRow = dims.front() + static_cast<int64_t>(dims.size()) == type.getRank();
  return !isRow || (ofRows && dims.size() == 1 && elements <= kMostOfRow);
}

/// Cheap to read from memory for each element of the result, and computed for nothing else.
bool isPlain(Value value) {
  Operation* op = value.getDefiningOp();
  if (!isa<RankedTensorType>(value.getType()))
    return true;
  if (!op)
    return false;
  if (isa<ir::TileLoadOp, ir::IotaOp, arith::ConstantOp>(op))
    return true;
  const bool isMoved = isa<ir::ReshapeOp, ir::TransposeOp, ir::SliceOp, ir::BroadcastOp>(op);
  return (isMoved || (ir::isElementwise(op) && op->hasOneUse())) && llvm::all_of(op->getOperands(), isPlain);
}

void unroll(ir::ReduceOp reduce) {
  OpBuilder b(reduce);
  const Location loc = reduce.getLoc();
  auto type = cast<RankedTensorType>(reduce.getValue().getType());
  auto result = cast<RankedTensorType>(reduce.getType());
  ArrayRef<int64_t> dims = reduce.getDims();
  const Type wide = accumulatorType(type.getElementType());  // narrow floats are rounded once
  const bool isAdded = reduce.getKind() == ir::Combine::AddF;
  SmallVector<Value> sizes;  // of the dimensions that stay, as those that go are known
  for (auto [dim, size] : llvm::enumerate(ir::tileSizeValues(b, loc, reduce.getValue())))
    if (type.isDynamicDim(static_cast<unsigned>(dim)))
      sizes.push_back(size);
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= type.getDimSize(static_cast<unsigned>(dim));
  Value zero = b.create<arith::ConstantIndexOp>(loc, 0), sum;
  for (int64_t number = 0; number < count; ++number) {
    SmallVector<Value> offsets(static_cast<size_t>(type.getRank()), zero);
    int64_t rest = number;
    for (int64_t dim : llvm::reverse(dims)) {
      const int64_t extent = type.getDimSize(static_cast<unsigned>(dim));
      offsets[static_cast<size_t>(dim)] = b.create<arith::ConstantIndexOp>(loc, rest % extent);
      rest /= extent;
    }
    Value part =
        b.create<ir::SliceOp>(loc, result.clone(type.getElementType()), reduce.getValue(), offsets, sizes, dims);
    if (isAdded && wide != type.getElementType())
      part = b.create<arith::ExtFOp>(loc, result.clone(wide), part);
    sum = sum ? ir::createCombine(b, loc, reduce.getKind(), sum, part) : part;
  }
  if (sum.getType() != result)
    sum = b.create<arith::TruncFOp>(loc, result, sum);
  reduce.replaceAllUsesWith(sum);
  reduce.erase();
}

/// Dimensions of what `inner` reduces that both reduce away.
SmallVector<int64_t> dimsOfBoth(ir::ReduceOp inner, ir::ReduceOp outer) {
  SmallVector<int64_t> kept, both(inner.getDims());
  for (int64_t dim = 0, rank = cast<RankedTensorType>(inner.getValue().getType()).getRank(); dim < rank; ++dim)
    if (!llvm::is_contained(inner.getDims(), dim))
      kept.push_back(dim);
  for (int64_t dim : outer.getDims())
    both.push_back(kept[static_cast<size_t>(dim)]);
  llvm::sort(both);
  return both;
}

}  // namespace

void mergeReductions(ir::KernelOp kernel) {
  for (auto outer : llvm::to_vector(kernel.getBody().front().getOps<ir::ReduceOp>())) {
    auto inner = outer.getValue().getDefiningOp<ir::ReduceOp>();
    const bool isNarrowSum =
        outer.getKind() == ir::Combine::AddF &&
        accumulatorType(getElementTypeOrSelf(outer.getValue())) != getElementTypeOrSelf(outer.getValue());
    if (!inner || inner.getKind() != outer.getKind() || !inner->hasOneUse() || isNarrowSum)
      continue;
    outer.setDims(dimsOfBoth(inner, outer));
    outer.getValueMutable().assign(inner.getValue());
    inner.erase();
  }
}

void unrollSmallReductions(ir::KernelOp kernel, bool ofRows) {
  for (auto reduce : llvm::to_vector(kernel.getBody().front().getOps<ir::ReduceOp>()))
    if (isSmall(reduce, ofRows) && isPlain(reduce.getValue()))
      unroll(reduce);
}

}  // namespace vortex::passes
