#include "ir/tile_sizes.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace vortex::ir {

using llvm::SmallVector;
using mlir::Operation;
using mlir::OpFoldResult;
using mlir::RankedTensorType;
using mlir::Value;
namespace scf = mlir::scf;

static OpFoldResult indexAttr(mlir::MLIRContext* context, int64_t value) {
  return mlir::IntegerAttr::get(mlir::IndexType::get(context), value);
}

/// Static extents; dynamic ones are null.
static SmallVector<OpFoldResult> staticSizes(mlir::MLIRContext* context, llvm::ArrayRef<int64_t> shape) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t extent : shape)
    sizes.push_back(mlir::ShapedType::isDynamic(extent) ? OpFoldResult() : indexAttr(context, extent));
  return sizes;
}

/// The first of equal alternatives that knows a dimension gives it.
static void fillFrom(SmallVector<OpFoldResult>& sizes, llvm::ArrayRef<OpFoldResult> other) {
  for (auto [size, alternative] : llvm::zip_equal(sizes, other))
    if (!size)
      size = alternative;
}

static bool isComplete(llvm::ArrayRef<OpFoldResult> sizes) {
  return llvm::all_of(sizes, [](OpFoldResult size) { return bool(size); });
}

static void fillOperands(SmallVector<OpFoldResult>& sizes, mlir::ValueRange operands) {
  auto next = operands.begin();
  for (OpFoldResult& size : sizes)
    if (!size)
      size = mlir::getAsOpFoldResult(*next++);
}

/// Extents computed inside `region` are of no use outside it.
static SmallVector<OpFoldResult> visibleOutside(SmallVector<OpFoldResult> sizes, mlir::Region& region) {
  for (OpFoldResult& size : sizes)
    if (auto value = llvm::dyn_cast_or_null<Value>(size); value && region.isAncestor(value.getParentRegion()))
      size = {};
  return sizes;
}

static OpFoldResult blockExtent(ThreadsOp threads) {
  OpFoldResult dynamic;
  int64_t product = 1;
  for (Value extent : {threads.getNx(), threads.getNy(), threads.getNz()}) {
    std::optional<int64_t> constant = mlir::getConstantIntValue(extent);
    if (constant)
      product *= *constant;
    else if (dynamic)
      return {};
    else
      dynamic = extent;
  }
  if (!dynamic)
    return indexAttr(threads.getContext(), product);
  return product == 1 ? dynamic : OpFoldResult();
}

void TileSizes::fillFromTileOp(Sizes& sizes, Operation* op) {
  if (auto load = llvm::dyn_cast<TileLoadOp>(op))
    return fillOperands(sizes, load.getSizes());
  if (auto broadcast = llvm::dyn_cast<BroadcastOp>(op))
    return fillOperands(sizes, broadcast.getSizes());
  if (auto iota = llvm::dyn_cast<IotaOp>(op))
    return fillOperands(sizes, iota.getSizes());
  if (auto reshape = llvm::dyn_cast<ReshapeOp>(op))
    return fillOperands(sizes, reshape.getSizes());
  if (auto slice = llvm::dyn_cast<SliceOp>(op))
    return fillOperands(sizes, slice.getSizes());
  if (auto scan = llvm::dyn_cast<ScanOp>(op))
    return fillFrom(sizes, of(scan.getValue()));
  if (auto transpose = llvm::dyn_cast<TransposeOp>(op)) {
    SmallVector<OpFoldResult> source = of(transpose.getValue()), permuted;
    for (int64_t dim : transpose.getPermutation())
      permuted.push_back(source[dim]);
    return fillFrom(sizes, permuted);
  }
  if (auto reduce = llvm::dyn_cast<ReduceOp>(op)) {
    SmallVector<OpFoldResult> kept;
    for (auto [i, size] : llvm::enumerate(of(reduce.getValue())))
      if (!llvm::is_contained(reduce.getDims(), int64_t(i)))
        kept.push_back(size);
    return fillFrom(sizes, kept);
  }
  if (auto dot = llvm::dyn_cast<DotOp>(op)) {
    fillFrom(sizes, of(dot.getAcc()));
    if (isComplete(sizes))
      return;
    SmallVector<OpFoldResult> product = of(dot.getA());
    product.back() = of(dot.getB()).back();
    return fillFrom(sizes, product);
  }
  if (isElementwise(op))
    for (Value operand : op->getOperands())
      if (llvm::isa<RankedTensorType>(operand.getType()) && !isComplete(sizes))
        fillFrom(sizes, of(operand));
}

void TileSizes::fillFromControl(Sizes& sizes, Operation* op, unsigned number) {
  if (auto loop = llvm::dyn_cast<scf::ForOp>(op))
    return fillFrom(sizes, of(loop.getInitArgs()[number]));
  if (auto loop = llvm::dyn_cast<scf::WhileOp>(op)) {
    Value source = loop.getConditionOp().getArgs()[number];
    return fillFrom(sizes, visibleOutside(of(source), loop.getBefore()));
  }
  for (mlir::Region& region : op->getRegions()) {
    if (!llvm::isa<scf::IfOp, scf::IndexSwitchOp, scf::ExecuteRegionOp>(op) || region.empty() || isComplete(sizes))
      continue;
    Value source = region.back().getTerminator()->getOperand(number);
    fillFrom(sizes, visibleOutside(of(source), region));
  }
}

void TileSizes::fillFromArgument(Sizes& sizes, mlir::BlockArgument argument) {
  Operation* parent = argument.getOwner()->getParentOp();
  if (auto loop = llvm::dyn_cast<scf::ForOp>(parent))
    return fillFrom(sizes, of(loop.getTiedLoopInit(argument)->get()));
  if (auto loop = llvm::dyn_cast<scf::WhileOp>(parent)) {
    bool before = argument.getOwner() == loop.getBeforeBody();
    if (before)
      return fillFrom(sizes, of(loop.getInits()[argument.getArgNumber()]));
    Value source = loop.getConditionOp().getArgs()[argument.getArgNumber()];
    fillFrom(sizes, visibleOutside(of(source), loop.getBefore()));
  }
}

SmallVector<OpFoldResult> TileSizes::of(Value tile) {
  auto type = llvm::cast<RankedTensorType>(tile.getType());
  SmallVector<OpFoldResult> sizes = staticSizes(tile.getContext(), type.getShape());
  if (isComplete(sizes))
    return sizes;
  if (auto known = known_.find(tile); known != known_.end())
    return known->second;
  Operation* op = tile.getDefiningOp();
  if (!op)
    fillFromArgument(sizes, llvm::cast<mlir::BlockArgument>(tile));
  else if (auto threads = llvm::dyn_cast<ThreadsOp>(op))
    sizes[0] = blockExtent(threads);
  else if (op->getNumRegions() != 0)
    fillFromControl(sizes, op, llvm::cast<mlir::OpResult>(tile).getResultNumber());
  else
    fillFromTileOp(sizes, op);
  known_[tile] = sizes;
  return sizes;
}

SmallVector<OpFoldResult> tileSizes(Value tile) { return TileSizes().of(tile); }

/// The threads op whose results `tile` has the extent of, through pointwise ops and loop-carried values.
static ThreadsOp sourceThreads(Value tile) {
  if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(tile)) {
    auto loop = llvm::dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop ? sourceThreads(loop.getTiedLoopInit(argument)->get()) : ThreadsOp();
  }
  Operation* op = tile.getDefiningOp();
  if (auto threads = llvm::dyn_cast<ThreadsOp>(op))
    return threads;
  if (auto loop = llvm::dyn_cast<scf::ForOp>(op))
    return sourceThreads(loop.getInitArgs()[llvm::cast<mlir::OpResult>(tile).getResultNumber()]);
  if (isElementwise(op) || llvm::isa<ScanOp>(op))
    for (Value operand : op->getOperands())
      if (llvm::isa<RankedTensorType>(operand.getType()))
        if (ThreadsOp threads = sourceThreads(operand))
          return threads;
  return {};
}

SmallVector<Value> tileSizeValues(mlir::OpBuilder& builder, mlir::Location loc, Value tile) {
  SmallVector<Value> values;
  for (OpFoldResult size : tileSizes(tile)) {
    if (size) {
      values.push_back(mlir::getValueOrCreateConstantIndexOp(builder, loc, size));
      continue;
    }
    ThreadsOp threads = values.empty() && llvm::cast<RankedTensorType>(tile.getType()).getRank() == 1
                            ? sourceThreads(tile)
                            : ThreadsOp();
    if (!threads) {
      values.push_back({});
      continue;
    }
    Value plane = builder.create<mlir::arith::MulIOp>(loc, threads.getNx(), threads.getNy());
    values.push_back(builder.create<mlir::arith::MulIOp>(loc, plane, threads.getNz()));
  }
  return values;
}

SmallVector<OpFoldResult> viewSizes(Value view) {
  auto type = llvm::cast<ViewType>(view.getType());
  SmallVector<OpFoldResult> sizes = staticSizes(view.getContext(), type.getShape());
  if (auto subview = view.getDefiningOp<SubviewOp>())
    fillOperands(sizes, subview.getSizes());
  return sizes;
}

bool isSameSize(OpFoldResult a, OpFoldResult b) { return a && b && mlir::isEqualConstantIntOrValue(a, b); }

}  // namespace vortex::ir
