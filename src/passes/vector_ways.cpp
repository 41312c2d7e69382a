#include "passes/vector_ways.h"

#include "ir/tile_sizes.h"
#include "passes/phase_marks.h"
#include "passes/plan/axes.h"
#include "passes/vector_products.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

namespace vortex::passes {

using namespace mlir;

namespace {

/// `fromEnd`: 1 for columns, 2 for rows.
unsigned dimOf(ir::DotOp dot, unsigned fromEnd) {
  return static_cast<unsigned>(cast<RankedTensorType>(dot.getType()).getRank()) - fromEnd;
}

/// What all the products have of them; null: they differ, or are known before the launch, or not known by it.
ir::SizeAttr commonExtent(const Axes& axes, ArrayRef<ir::DotOp> dots, unsigned fromEnd) {
  ir::SizeAttr common;
  for (ir::DotOp dot : dots) {
    ir::SizeAttr extent = axes.extent(axes.of(dot.getResult())[dimOf(dot, fromEnd)]);
    if (!extent || ir::constantSize(extent) || (common && common != extent))
      return {};
    common = extent;
  }
  return common;
}

/// The operand segment of dynamic extents, if the operation has one.
std::optional<MutableOperandRange> sizesOf(Operation* op) {
  return llvm::TypeSwitch<Operation*, std::optional<MutableOperandRange>>(op)
      .Case<ir::TileLoadOp, ir::BroadcastOp, ir::IotaOp, ir::ReshapeOp, ir::SliceOp>(
          [](auto made) { return made.getSizesMutable(); })
      .Default([](Operation*) { return std::nullopt; });
}

/// Loads and stores of arguments take windows without the dimensions that became 1: rows of such tensors are those of the dimension before.
class Windows {
public:
  explicit Windows(ir::KernelOp kernel) : body_(kernel.getBody().front()) {}

  void replace(ir::TileLoadOp load, ArrayRef<int64_t> dropped) {
    OpBuilder builder(load);
    auto type = cast<RankedTensorType>(load.getType());
    Value window = windowOf(load.getView(), dropped);
    auto flat = RankedTensorType::get(rest(type.getShape(), dropped), type.getElementType());
    Value tile = builder.create<ir::TileLoadOp>(load.getLoc(), flat, window, rest<Value>(load.getOffsets(), dropped),
                                                load.getSizes(), Value(), true);
    Value whole = builder.create<ir::ReshapeOp>(load.getLoc(), type, tile, load.getSizes());
    load.replaceAllUsesWith(whole);
    load.erase();
  }

  void replace(ir::TileStoreOp store, ArrayRef<int64_t> dropped) {
    OpBuilder builder(store);
    auto type = cast<RankedTensorType>(store.getValue().getType());
    SmallVector<Value> sizes = ir::tileSizeValues(builder, store.getLoc(), store.getValue());
    SmallVector<Value> open;
    for (auto [dim, size] : llvm::enumerate(sizes))
      if (type.isDynamicDim(static_cast<unsigned>(dim)))
        open.push_back(size);
    if (llvm::is_contained(open, Value()))
      return;
    auto flat = RankedTensorType::get(rest(type.getShape(), dropped), type.getElementType());
    store.getValueMutable().assign(builder.create<ir::ReshapeOp>(store.getLoc(), flat, store.getValue(), open));
    store.getViewMutable().assign(windowOf(store.getView(), dropped));
    store.getOffsetsMutable().assign(rest<Value>(store.getOffsets(), dropped));
  }

private:
  template <typename T, typename Range> static SmallVector<T> rest(const Range& all, ArrayRef<int64_t> dropped) {
    SmallVector<T> kept;
    for (auto [dim, each] : llvm::enumerate(all))
      if (!llvm::is_contained(dropped, static_cast<int64_t>(dim)))
        kept.push_back(each);
    return kept;
  }
  static SmallVector<int64_t> rest(ArrayRef<int64_t> shape, ArrayRef<int64_t> dropped) {
    return rest<int64_t>(shape, dropped);
  }

  /// One of each kind, so that statements see that they read what they write.
  Value windowOf(Value view, ArrayRef<int64_t> dropped) {
    Value& window = windows_[{view.getAsOpaquePointer(), dropped.vec()}];
    if (window)
      return window;
    auto builder = OpBuilder::atBlockBegin(&body_);
    const Location loc = view.getLoc();
    auto type = cast<ir::ViewType>(view.getType());
    SmallVector<Value> sizes;
    for (unsigned dim = 0; dim < static_cast<unsigned>(type.getRank()); ++dim)
      if (type.isDynamic(dim) && !llvm::is_contained(dropped, static_cast<int64_t>(dim)))
        sizes.push_back(builder.create<ir::DimOp>(loc, view, dim));
    Value zero = builder.create<arith::ConstantIndexOp>(loc, 0);
    auto part = ir::ViewType::get(rest(type.getShape(), dropped), type.getElementType());
    window =
        builder.create<ir::SubviewOp>(loc, part, view, SmallVector<Value>(static_cast<size_t>(type.getRank()), zero),
                                      sizes, builder.getDenseI64ArrayAttr(dropped));
    window.getDefiningOp()->setAttr(kUnitWindow, builder.getUnitAttr());
    return window;
  }

  Block& body_;
  std::map<std::pair<void*, std::vector<int64_t>>, Value> windows_;
};

/// Tiles that have one of the axes become tiles of extent 1 along it.
class Narrowing {
public:
  Narrowing(ir::KernelOp kernel, ArrayRef<ir::DotOp> dots, unsigned fromEnd) : axes_(kernel, true) {
    for (ir::DotOp dot : dots)
      ones_.insert(axes_.of(dot.getResult())[dimOf(dot, fromEnd)]);
  }

  void run(ir::KernelOp kernel) {
    SmallVector<std::pair<Operation*, SmallVector<int64_t>>> accesses;
    for (Operation& op : kernel.getBody().front()) {
      SmallVector<int64_t> dropped;
      if (auto load = dyn_cast<ir::TileLoadOp>(op))
        dropped = unitDims(load.getView(), load.getResult(), load.getOffsets(), load.getInbounds());
      else if (auto store = dyn_cast<ir::TileStoreOp>(op))
        dropped = unitDims(store.getView(), store.getValue(), store.getOffsets(), store.getInbounds());
      if (!dropped.empty())
        accesses.push_back({&op, dropped});
    }
    kernel.walk([&](Operation* op) {
      if (std::optional<MutableOperandRange> sizes = sizesOf(op))
        keepSizes(op->getResult(0), *sizes);
      for (Value result : op->getResults())
        narrow(result);
      for (Region& region : op->getRegions())
        for (Block& block : region)
          for (Value argument : block.getArguments())
            narrow(argument);
    });
    Windows windows(kernel);
    for (auto& [op, dropped] : accesses)
      if (auto load = dyn_cast<ir::TileLoadOp>(op))
        windows.replace(load, dropped);
      else
        windows.replace(cast<ir::TileStoreOp>(op), dropped);
  }

private:
  /// The dimensions of a whole argument's tile that may vanish: not all.
  SmallVector<int64_t> unitDims(Value view, Value tile, ValueRange offsets, bool isInside) const {
    SmallVector<int64_t> dims;
    if (!isInside || !isa<BlockArgument>(view) ||
        !llvm::all_of(offsets, [](Value offset) { return getConstantIntValue(offset) == 0; }))
      return dims;
    for (auto [dim, axis] : llvm::enumerate(axes_.of(tile)))
      if (ones_.contains(axis))
        dims.push_back(static_cast<int64_t>(dim));
    return dims.size() == offsets.size() ? SmallVector<int64_t>() : dims;
  }

  /// Those of dimensions that stay open.
  void keepSizes(Value result, MutableOperandRange sizes) {
    SmallVector<Value> kept;
    unsigned next = 0;
    auto type = cast<RankedTensorType>(result.getType());
    for (auto [dim, axis] : llvm::enumerate(axes_.of(result))) {
      if (!type.isDynamicDim(static_cast<unsigned>(dim)))
        continue;
      Value size = sizes[next++].get();
      if (!ones_.contains(axis))
        kept.push_back(size);
    }
    sizes.assign(kept);
  }

  void narrow(Value value) {
    if (!isTile(value))
      return;
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    for (auto [extent, axis] : llvm::zip_equal(shape, axes_.of(value)))
      if (ones_.contains(axis))
        extent = 1;
    value.setType(type.clone(shape));
  }

  Axes axes_;
  AxisSet ones_;
};

/// Narrow elements that matrix units take. One row times a matrix whose rows lie across the depth: they read it as fast as sums of columns do, often in a
/// launch less (H200, bf16 32000 × 4096: 65 µs, sums 73). Integers: sums as narrow as they are have few uses, and others are products anyhow.
bool isBetterAsProduct(ir::DotOp dot, unsigned fromEnd) {
  auto type = cast<RankedTensorType>(dot.getB().getType());
  if (type.getElementTypeBitWidth() >= 32)
    return false;
  const bool isInteger = isa<IntegerType>(type.getElementType());
  if (fromEnd == 1 || isInteger)
    return isInteger;
  int64_t depth = type.getRank() - 2;
  for (Operation* op = dot.getB().getDefiningOp(); isa_and_nonnull<ir::TransposeOp, arith::ExtFOp, arith::TruncFOp>(op);
       op = op->getOperand(0).getDefiningOp())
    if (auto turned = dyn_cast<ir::TransposeOp>(op))
      depth = turned.getPermutation()[static_cast<size_t>(depth)];
  return depth + 1 != type.getRank();
}

SmallVector<ir::DotOp> productsOf(ir::KernelOp kernel) {
  return llvm::to_vector(kernel.getBody().front().getOps<ir::DotOp>());
}

}  // namespace

SmallVector<VectorWay, 2> addVectorWays(ir::KernelOp kernel) {
  SmallVector<VectorWay, 2> ways;
  const SmallVector<ir::DotOp> dots = productsOf(kernel);
  size_t all = 0;
  kernel.walk([&](ir::DotOp) { ++all; });
  if (dots.empty() || all != dots.size())
    return ways;
  const Axes axes(kernel, true);
  for (auto [name, fromEnd] : {std::pair{"one column", 1u}, std::pair{"one row", 2u}}) {
    ir::SizeAttr extent = commonExtent(axes, dots, fromEnd);
    if (!extent || llvm::any_of(dots, [&, count = fromEnd](ir::DotOp dot) { return isBetterAsProduct(dot, count); }))
      continue;
    ir::KernelOp copy = kernel.clone();
    OpBuilder(kernel).insert(copy);
    Narrowing(copy, productsOf(copy), fromEnd).run(copy);
    sumVectorProducts(copy, true);
    if (!productsOf(copy).empty()) {
      copy.erase();
      continue;
    }
    ir::SizeAttr needs = ir::sizeBinary(size::Op::Equal, extent, ir::sizeConstant(kernel.getContext(), 1));
    ways.push_back({name, needs, copy});
  }
  return ways;
}

}  // namespace vortex::passes
