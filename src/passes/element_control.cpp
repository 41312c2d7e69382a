#include "passes/element_control.h"

#include "analysis/element_control.h"
#include "ir/root_view.h"
#include "ir/size_attr.h"
#include "ir/tile_sizes.h"
#include "passes/plan/axes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace vortex::passes {

using namespace mlir;

namespace {

class ElementControl {
public:
  ElementControl(ir::EntryOp entry, ir::KernelOp kernel) : entry_(entry), kernel_(kernel) {
    kernel.walk([&](Operation* op) {
      if (auto store = dyn_cast<ir::TileStoreOp>(op))
        written_.insert(ir::rootView(store.getView()));
      else if (!isa<ir::TileLoadOp, ir::LoadOp>(op) && op->getNumRegions() == 0 && !isMemoryEffectFree(op))
        for (Value operand : op->getOperands())
          written_.insert(ir::rootView(operand));
    });
  }

  void run() {
    SmallVector<scf::IfOp> branches;
    kernel_.walk([&](scf::IfOp branch) { branches.push_back(branch); });
    for (scf::IfOp branch : branches)  // inner ones first
      select(branch);
    SmallVector<Operation*> controls;
    kernel_.walk<WalkOrder::PreOrder>([&](Operation* op) {
      if (isa<scf::ForOp, scf::WhileOp, scf::IfOp>(op) && isa<ir::KernelOp>(op->getParentOp()))
        controls.push_back(op);
    });
    for (Operation* control : controls)
      hoist(control);
  }

private:
  /// Both sides are computed, which costs less than a branch around them. Scalars are computed once, however many there are.
  static bool isCheap(Block* block) {
    constexpr int kMostOperations = 8;
    int operations = 0;
    for (Operation& op : block->without_terminator()) {
      const bool isPlain = isa<ir::BroadcastOp, ir::IotaOp, arith::ConstantOp>(op) || ir::isElementwise(&op);
      if (!isPlain || ir::isFloatFunction(&op) || !isPure(&op))
        return false;
      operations += ir::isElementwise(&op) && isTile(op.getResult(0));
    }
    return operations <= kMostOperations;
  }

  static Value narrowSource(Value value) {
    while (auto wide = value.getDefiningOp<arith::ExtFOp>())
      value = wide.getIn();
    return value;
  }

  /// `condition == when ? (mask ? fill : plain) : plain` chooses once, by both: later passes know masks by that form. Null: there is no such mask.
  static Value mergeMask(OpBuilder& builder, Location loc, Value condition, bool when, Value masked, Value plain) {
    auto rounded = masked.getDefiningOp<arith::TruncFOp>();
    auto mask = (rounded ? rounded.getIn() : masked).getDefiningOp<arith::SelectOp>();
    if (!mask || !isTile(mask.getCondition()))
      return {};
    auto isPlain = [&](Value value) { return (rounded ? narrowSource(value) : value) == plain; };
    const bool fillsWhere = isPlain(mask.getFalseValue());
    if (!fillsWhere && !isPlain(mask.getTrueValue()))
      return {};
    auto type = cast<RankedTensorType>(mask.getCondition().getType());
    SmallVector<Value> sizes;
    for (auto [dim, size] : llvm::enumerate(ir::tileSizeValues(builder, loc, plain))) {
      if (!size)
        return {};
      if (type.isDynamicDim(static_cast<unsigned>(dim)))
        sizes.push_back(size);
    }
    if (fillsWhere != when)
      condition = builder.create<arith::XOrIOp>(loc, condition,
                                                builder.create<arith::ConstantOp>(loc, builder.getBoolAttr(true)));
    Value tile = builder.create<ir::BroadcastOp>(loc, type, condition, builder.getDenseI64ArrayAttr({}), sizes);
    Value both = fillsWhere ? builder.create<arith::AndIOp>(loc, tile, mask.getCondition()).getResult()
                            : builder.create<arith::OrIOp>(loc, tile, mask.getCondition()).getResult();
    Value chosen = builder.create<arith::SelectOp>(loc, both, mask.getTrueValue(), mask.getFalseValue());
    return rounded ? builder.create<arith::TruncFOp>(loc, rounded.getType(), chosen).getResult() : chosen;
  }

  static Value choose(scf::IfOp branch, Value a, Value b) {
    OpBuilder builder(branch);
    Value condition = branch.getCondition();
    if (a == b)
      return a;
    if (Value merged = mergeMask(builder, branch.getLoc(), condition, true, a, b))
      return merged;
    if (Value merged = mergeMask(builder, branch.getLoc(), condition, false, b, a))
      return merged;
    return builder.create<arith::SelectOp>(branch.getLoc(), condition, a, b);
  }

  static void select(scf::IfOp branch) {
    if (!branch.elseBlock() || llvm::none_of(branch.getResults(), isTile) || !isCheap(branch.thenBlock()) ||
        !isCheap(branch.elseBlock()))
      return;
    SmallVector<Value> then(branch.thenYield().getOperands()), otherwise(branch.elseYield().getOperands());
    for (Block* block : {branch.thenBlock(), branch.elseBlock()})
      for (Operation& op : llvm::make_early_inc_range(block->without_terminator()))
        op.moveBefore(branch);
    for (auto [result, a, b] : llvm::zip(branch.getResults(), then, otherwise))
      result.replaceAllUsesWith(choose(branch, a, b));
    branch.erase();
  }

  /// All of the view, in every launch that the entry allows.
  bool isWhole(ir::TileLoadOp load) {
    ir::EntryOp entry = entry_;
    auto view = dyn_cast<BlockArgument>(load.getView());
    if (!view || load.getResult().getType().getRank() != cast<ir::ViewType>(view.getType()).getRank())
      return false;
    auto isEqual = [&](ir::SizeAttr a, ir::SizeAttr b) {
      ir::SizeAttr equal = ir::sizeBinary(size::Op::Equal, a, b);
      return ir::constantSize(equal) == 1 ||
             llvm::any_of(entry.getConstraints().getAsRange<ir::ConstraintAttr>(),
                          [&](ir::ConstraintAttr constraint) { return constraint.getCondition() == equal; });
    };
    for (auto [dim, offset, extent] : llvm::enumerate(load.getOffsets(), ir::tileSizes(load.getResult()))) {
      ir::SizeAttr size = sizeExpression(extent);
      if (getConstantIntValue(offset) != 0 || !size ||
          !isEqual(size, ir::sizeDim(load.getContext(), view.getArgNumber(), static_cast<unsigned>(dim))))
        return false;
    }
    return true;
  }

  void hoist(Operation* control) {
    SmallVector<Operation*> moved;
    llvm::DenseSet<Operation*> isMoved;
    auto isOutside = [&](Value value) {
      Operation* op = value.getDefiningOp();
      return (op && isMoved.contains(op)) || !control->isAncestor(value.getParentRegion()->getParentOp());
    };
    control->walk<WalkOrder::PreOrder>([&](Operation* op) {
      auto load = dyn_cast<ir::TileLoadOp>(op);
      const bool mayMove = op != control && op->getNumRegions() == 0 && !op->hasTrait<OpTrait::IsTerminator>() &&
                           !isa<ir::ReduceOp, ir::ScanOp, ir::DotOp>(op) &&
                           (load ? !written_.contains(ir::rootView(load.getView())) : isPure(op));
      if (mayMove && llvm::all_of(op->getOperands(), isOutside)) {
        moved.push_back(op);
        isMoved.insert(op);
      }
    });
    if (!analysis::isElementControl(control, [&](Operation* op) { return isMoved.contains(op); }))
      return;
    for (Operation* op : moved) {
      // What was proven inside need not hold before.
      if (auto load = dyn_cast<ir::TileLoadOp>(op); load && load.getInbounds() && !isWhole(load))
        load.setInbounds(false);
      op->moveBefore(control);
    }
  }

  ir::EntryOp entry_;
  ir::KernelOp kernel_;
  llvm::DenseSet<Value> written_;
};

}  // namespace

void prepareElementControl(ir::EntryOp entry, ir::KernelOp kernel) { ElementControl(entry, kernel).run(); }

}  // namespace vortex::passes
