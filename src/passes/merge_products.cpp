// One product packs each operand once, keeps its sums in registers over hundreds of steps and stores what follows it from there; a loop packs
// in every step (and, for a step of 32, moves the sums as often as it multiplies).
#include "passes/merge_products.h"

#include "passes/tile_stretch.h"

#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/Dialect/Utils/StaticValueUtils.h>
#include <mlir/IR/IRMapping.h>
#include <mlir/Interfaces/SideEffectInterfaces.h>

namespace vortex::passes {
namespace {

namespace arith = mlir::arith;
using mlir::Value;

class ProductLoop {
public:
  explicit ProductLoop(mlir::scf::ForOp loop) : loop_(loop), builder_(loop) {}

  void run() {
    if (!findProducts() || !hasOnlyReads())
      return;
    Value depth = depthOfAll();
    llvm::SmallVector<Value> results;
    for (auto [number, dot] : llvm::enumerate(dots_)) {
      int64_t rank = mlir::cast<mlir::RankedTensorType>(dot.getType()).getRank();
      Value a = stretch(dot.getA(), rank - 1, depth), b = a ? stretch(dot.getB(), rank - 2, depth) : Value();
      if (!b)
        return eraseNew();
      auto whole = builder_.create<ir::DotOp>(dot.getLoc(), dot.getType(), a, b, loop_.getInitArgs()[number]);
      whole->setDiscardableAttrs(dot->getDiscardableAttrDictionary());  // tf32
      results.push_back(whole);
    }
    loop_.replaceAllUsesWith(results);
    loop_.erase();
    for (Value memory : llvm::make_first_range(copies_))
      if (memory.use_empty())
        memory.getDefiningOp()->erase();
  }

private:
  /// Every carried value is the sum of one product.
  bool findProducts() {
    std::optional<int64_t> step = mlir::getConstantIntValue(loop_.getStep());
    for (auto [sum, next] : llvm::zip(loop_.getRegionIterArgs(), loop_.getYieldedValues())) {
      auto dot = next.getDefiningOp<ir::DotOp>();
      if (!dot || dot->getBlock() != loop_.getBody() || dot.getAcc() != sum || !sum.hasOneUse() || !dot->hasOneUse())
        return false;
      mlir::Type type = mlir::getElementTypeOrSelf(dot.getType());
      auto a = mlir::cast<mlir::RankedTensorType>(dot.getA().getType());
      if (type.getIntOrFloatBitWidth() < 32 || a.isDynamicDim(a.getRank() - 1) || step != a.getShape().back())
        return false;
      dots_.push_back(dot);
    }
    return !dots_.empty();
  }

  /// A shared tile that holds nothing but what `copy` brings, for reads of all of it in the same step.
  bool isCopyOnly(ir::StageCopyOp copy) {
    auto memory = copy.getDestination().getDefiningOp<ir::AllocOp>();
    return memory && llvm::all_of(memory->getUsers(), [&](mlir::Operation* user) {
             auto load = mlir::dyn_cast<ir::TileLoadOp>(user);
             return user == copy ||
                    (load && load->getBlock() == copy->getBlock() && copy->isBeforeInBlock(load) &&
                     load.getInbounds() && load.getType().getShape() == copy.getDestination().getType().getShape());
           });
  }

  bool hasOnlyReads() {
    for (mlir::Operation& op : loop_.getBody()->without_terminator()) {
      if (auto copy = mlir::dyn_cast<ir::StageCopyOp>(op)) {
        if (!copy.getDropped().empty() || !isCopyOnly(copy))
          return false;
        copies_[copy.getDestination()] = copy;
      } else if (op.getNumRegions() != 0 ||
                 !(mlir::isMemoryEffectFree(&op) ||
                   mlir::isa<ir::TileLoadOp, ir::LoadOp, ir::BarrierOp, ir::StageCommitOp, ir::StageWaitOp>(op))) {
        return false;
      }
    }
    return true;
  }

  /// Whole steps: past the end, windows are as empty as in the last step.
  Value depthOfAll() {
    mlir::Location loc = loop_.getLoc();
    Value from = loop_.getLowerBound(), step = loop_.getStep();
    Value to = builder_.createOrFold<arith::MaxSIOp>(loc, loop_.getUpperBound(), from);
    Value span = builder_.createOrFold<arith::SubIOp>(loc, to, from);
    if (!span.getType().isIndex()) {
      span = builder_.create<arith::IndexCastOp>(loc, builder_.getIndexType(), span);
      step = builder_.create<arith::ConstantIndexOp>(loc, *mlir::getConstantIntValue(step));
    }
    Value steps = builder_.create<ir::IntOp>(loc, span.getType(), ir::IntKind::CeilDivU, span, step);
    return builder_.create<arith::MulIOp>(loc, steps, step);
  }

  bool isInside(Value value) { return loop_.getRegion().isAncestor(value.getParentRegion()); }

  /// The same in every step, and safe where there is none.
  Value keep(Value value) {
    if (!isInside(value))
      return value;
    if (Value known = kept_.lookupOrNull(value))
      return known;
    mlir::Operation* op = value.getDefiningOp();
    if (!op || op->getNumRegions() != 0 || !mlir::isMemoryEffectFree(op))
      return {};
    for (Value operand : op->getOperands())
      if (!keep(operand))
        return {};
    builder_.clone(*op, kept_);
    return kept_.lookup(value);
  }

  /// What `offset`, which is the loop's number plus something that stays, is for the first step.
  Value start(Value offset) {
    if (offset == loop_.getInductionVar())
      return loop_.getLowerBound();
    mlir::Operation* op = offset.getDefiningOp();
    bool isWide = offset.getType().isIndex() || offset.getType().isInteger(64);
    if (!op || !isInside(offset) || !isWide || !mlir::isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::AddIOp>(op))
      return {};
    bool isFirst = mlir::isa<arith::AddIOp>(op) && !dependsOnStep(op->getOperand(0));
    mlir::IRMapping mapping;
    for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
      Value made = number == static_cast<size_t>(isFirst) ? start(operand) : keep(operand);
      if (!made)
        return {};
      mapping.map(operand, made);
    }
    return builder_.clone(*op, mapping)->getResult(0);
  }

  bool dependsOnStep(Value value) {
    if (value == loop_.getInductionVar())
      return true;
    mlir::Operation* op = value.getDefiningOp();
    return op && isInside(value) &&
           llvm::any_of(op->getOperands(), [&](Value operand) { return dependsOnStep(operand); });
  }

  std::optional<TileWindow> window(ir::TileLoadOp load) {
    if (ir::StageCopyOp copy = copies_.lookup(load.getView()))
      return TileWindow{copy.getSource(), llvm::to_vector(copy.getOffsets()), {}, copy.getInbounds()};
    return TileWindow{load.getView(), llvm::to_vector(load.getOffsets()), load.getOther(), load.getInbounds()};
  }

  Value stretch(Value tile, int64_t dim, Value depth) {
    return TileStretch(builder_, depth,
                       {.window = [this](ir::TileLoadOp load) { return window(load); },
                        .start = [this](ir::TileLoadOp load, int64_t dim) { return start(window(load)->offsets[dim]); },
                        .keep = [this](Value value) { return keep(value); }})
        .of(tile, dim);
  }

  void eraseNew() {
    while (loop_->getPrevNode() != before_)
      loop_->getPrevNode()->erase();
  }

  mlir::scf::ForOp loop_;
  mlir::OpBuilder builder_;
  mlir::Operation* before_ = loop_->getPrevNode();
  llvm::SmallVector<ir::DotOp> dots_;
  llvm::DenseMap<Value, ir::StageCopyOp> copies_;  ///< by shared tile
  mlir::IRMapping kept_;
};

struct MergeProductsPass : mlir::PassWrapper<MergeProductsPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MergeProductsPass)
  llvm::StringRef getArgument() const override { return "vx-merge-products"; }
  llvm::StringRef getDescription() const override { return "products taken in steps of their depth become one"; }
  void runOnOperation() override { mergeProducts(getOperation()); }
};

}  // namespace

void mergeProducts(mlir::ModuleOp module) {
  llvm::SmallVector<mlir::scf::ForOp> loops;
  for (auto kernel : module.getOps<ir::KernelOp>())
    if (!kernel.getWholeTensor())
      kernel.walk([&](mlir::scf::ForOp loop) { loops.push_back(loop); });
  for (mlir::scf::ForOp loop : loops)
    ProductLoop(loop).run();
}

std::unique_ptr<mlir::Pass> createMergeProductsPass() { return std::make_unique<MergeProductsPass>(); }

}  // namespace vortex::passes
