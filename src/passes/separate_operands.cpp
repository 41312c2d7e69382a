#include "passes/separate_operands.h"

#include "ir/tile_sizes.h"
#include "passes/plan/axes.h"

#include "mlir/IR/IRMapping.h"

namespace vortex::passes {

using namespace mlir;

namespace {

/// The operations between an operand and memory, producers first. Nothing where they do more than rearrange and compute elements.
std::optional<llvm::SetVector<Operation*>> slice(Value operand) {
  llvm::SetVector<Operation*> ops;
  bool plain = true;
  auto visit = [&](auto& self, Value value) -> void {
    Operation* op = value.getDefiningOp();
    if (!op || !isa<RankedTensorType>(value.getType()) || ops.contains(op))
      return;
    if (!isa<ir::TileLoadOp>(op)) {
      plain &= ir::isElementwise(op) ||
               isa<ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::ReshapeOp, arith::ConstantOp>(op);
      if (!plain)
        return;
      for (Value source : op->getOperands())
        self(self, source);
    }
    ops.insert(op);
  };
  visit(visit, operand);
  return plain ? std::optional(ops) : std::nullopt;
}

/// A copy of the slice, each operation beside its original: a load must not move past stores.
Value copySlice(Value operand, const llvm::SetVector<Operation*>& ops) {
  IRMapping copies;
  for (Operation* op : ops) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    builder.clone(*op, copies);
  }
  return copies.lookupOrDefault(operand);
}

/// A copy of a tile with axes of its own, down to memory. Null where the memory's extents are not at hand.
Value copyApart(Value tile, IRMapping& copies) {
  if (Value known = copies.lookupOrNull(tile))
    return known;
  Operation* op = tile.getDefiningOp();
  if (!op)
    return {};
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  bool isPlain =
      ir::isElementwise(op) ||
      isa<ir::TransposeOp, ir::BroadcastOp, ir::SliceOp, ir::ReshapeOp, ir::IotaOp, ir::TileLoadOp, arith::ConstantOp>(
          op);
  if (!isPlain) {
    SmallVector<Value> sizes;
    auto type = cast<RankedTensorType>(tile.getType());
    for (auto [dim, size] : llvm::enumerate(ir::tileSizeValues(builder, op->getLoc(), tile)))
      if (type.isDynamicDim(static_cast<unsigned>(dim))) {
        if (!size)
          return {};
        sizes.push_back(size);
      }
    auto reshape = builder.create<ir::ReshapeOp>(op->getLoc(), type, tile, sizes);
    reshape->setAttr(kApartAttribute, builder.getUnitAttr());
    copies.map(tile, reshape.getResult());
    return reshape;
  }
  // What stands apart reads memory that holds the original: it has no copy.
  if (op->hasAttr(kApartAttribute)) {
    copies.map(tile, builder.clone(*op)->getResult(0));
    return copies.lookup(tile);
  }
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()) && !copyApart(operand, copies))
      return {};
  builder.setInsertionPointAfter(op);
  builder.clone(*op, copies);
  return copies.lookup(tile);
}

/// Gives one of the operands axes of its own; false: that leaves the operation's axes repeated.
bool separateOneOperand(Operation* op, MutableArrayRef<OpOperand> operands) {
  for (OpOperand& operand : llvm::reverse(operands)) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    Value before = operand.get();
    IRMapping copies;
    if (Value copy = copyApart(before, copies)) {
      operand.set(copy);
      if (Axes::firstRepetition(op->getParentOfType<ir::KernelOp>()) != op)
        return true;
      operand.set(before);
    }
  }
  return false;
}

/// The same of products that add to what another one adds to, zeros above all: that ties the results of both.
bool separateRepeated(Operation* op) {
  if (separateOneOperand(op, op->getOpOperands()))
    return true;
  auto dot = dyn_cast<ir::DotOp>(op);
  if (!dot)
    return false;
  Value before = dot.getAcc();
  IRMapping copies;
  Value copy = copyApart(before, copies);
  if (!copy)
    return false;
  dot.getAccMutable().assign(copy);
  if (separateOneOperand(op, op->getOpOperands().drop_back()))
    return true;
  dot.getAccMutable().assign(before);
  return false;
}

/// Rows or columns of the product are cut on the way to an operand: blocks could not have pieces of them.
bool cutsResult(const Axes& axes, ir::DotOp dot, Value operand) {
  SmallVector<Axis> result = axes.of(dot.getResult());
  auto visit = [&](auto& self, Value value) -> bool {
    Operation* op = value.getDefiningOp();
    if (!op || op->hasAttr(kApartAttribute) ||
        !(ir::isElementwise(op) || isa<ir::TransposeOp, ir::BroadcastOp, ir::SliceOp>(op)))
      return false;
    if (isa<ir::SliceOp>(op)) {
      AxisSet whole = axes.wholeAxes(op);
      if (llvm::any_of(ArrayRef(result).take_back(2), [&](Axis axis) { return whole.contains(axis); }))
        return true;
    }
    return llvm::any_of(op->getOperands(),
                        [&](Value source) { return isa<RankedTensorType>(source.getType()) && self(self, source); });
  };
  return visit(visit, operand);
}

/// Everything that `value` is computed from.
void addSources(Value value, llvm::SetVector<Operation*>& sources) {
  Operation* op = value.getDefiningOp();
  if (op && sources.insert(op))
    for (Value operand : op->getOperands())
      addSources(operand, sources);
}

/// Other operations have the dimensions that the reshape needs whole, all of its source's: one block would do them all
/// (`x + x.reshape([N, M]).transpose()`). What is written as it is computed, under other extents, needs no block of its own.
bool keepsOthersWhole(ir::KernelOp kernel, ir::ReshapeOp reshape) {
  if (reshape->hasAttr(kApartAttribute) ||
      (Axes(kernel).flattens(reshape) && llvm::all_of(reshape->getUsers(), llvm::IsaPred<ir::TileStoreOp>)))
    return false;
  const Axes axes(kernel, /*splitReshapes=*/true);
  const AxisSet whole = axes.wholeAxes(reshape);
  if (!llvm::all_of(axes.of(reshape.getValue()), [&](Axis axis) { return whole.contains(axis); }))
    return false;
  llvm::SetVector<Operation*> sources;
  addSources(reshape.getValue(), sources);
  sources.insert(reshape);
  const auto hasSuch = [&](Value tile) {
    return llvm::any_of(axes.of(tile), [&](Axis axis) { return whole.contains(axis); });
  };
  return kernel
      .walk([&](Operation* op) {
        const bool isOther = !sources.contains(op) &&
                             (llvm::any_of(op->getOperands(), hasSuch) || llvm::any_of(op->getResults(), hasSuch));
        return isOther ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Gives what such reshapes regroup a copy of its own.
void separateReshapes(ir::KernelOp kernel) {
  for (auto reshape : llvm::to_vector(kernel.getBody().front().getOps<ir::ReshapeOp>()))
    if (keepsOthersWhole(kernel, reshape)) {
      IRMapping copies;
      if (Value copy = copyApart(reshape.getValue(), copies))
        reshape.getValueMutable().assign(copy);
    }
}

}  // namespace

void separateOperands(ir::KernelOp kernel) {
  SmallVector<ir::DotOp> dots;
  kernel.walk([&](ir::DotOp dot) { dots.push_back(dot); });
  llvm::DenseSet<Operation*> taken;
  for (ir::DotOp dot : dots)
    for (OpOperand* operand : {&dot.getAMutable(), &dot.getBMutable()}) {
      auto ops = slice(operand->get());
      if (!ops)
        continue;
      if (llvm::any_of(*ops, [&](Operation* op) { return taken.contains(op); }))
        operand->set(copySlice(operand->get(), *ops));
      else
        taken.insert(ops->begin(), ops->end());
    }
  while (Operation* op = Axes::firstRepetition(kernel))
    if (op->getBlock() != &kernel.getBody().front() || op->getNumRegions() != 0 || !separateRepeated(op))
      return;
  separateReshapes(kernel);
  for (ir::DotOp dot : dots)
    for (OpOperand* operand : {&dot.getAMutable(), &dot.getBMutable()})
      if (IRMapping copies;
          dot->getBlock() == &kernel.getBody().front() && cutsResult(Axes(kernel), dot, operand->get()))
        if (Value copy = copyApart(operand->get(), copies))
          operand->set(copy);
}

void flattenBetween(ir::KernelOp kernel) {
  Axes axes(kernel);
  for (auto reshape : llvm::to_vector(kernel.getBody().front().getOps<ir::ReshapeOp>())) {
    if (!axes.regroups(reshape))
      continue;
    OpBuilder builder(reshape);
    auto type = cast<RankedTensorType>(reshape.getValue().getType());
    SmallVector<Value> sizes;
    int64_t extent = type.hasStaticShape() ? type.getNumElements() : ShapedType::kDynamic;
    if (!type.hasStaticShape()) {
      Value count;
      for (Value size : ir::tileSizeValues(builder, reshape.getLoc(), reshape.getValue()))
        count = !size ? Value() : count ? builder.create<arith::MulIOp>(reshape.getLoc(), count, size) : size;
      if (!count)
        continue;
      sizes.push_back(count);
    }
    auto flat = builder.create<ir::ReshapeOp>(reshape.getLoc(), RankedTensorType::get({extent}, type.getElementType()),
                                              reshape.getValue(), sizes);
    reshape.getValueMutable().assign(flat.getResult());
  }
}

}  // namespace vortex::passes
