#include "passes/expand_staging.h"

#include "ir/vx.h"

namespace vortex::passes {

using mlir::Value;

namespace {

void expand(ir::StageCopyOp op) {
  mlir::OpBuilder b(op);
  mlir::Location loc = op.getLoc();
  ir::ViewType destination = op.getDestination().getType();
  llvm::SmallVector<int64_t> window;
  for (size_t dim = 0, next = 0; dim < op.getOffsets().size(); ++dim)
    window.push_back(llvm::is_contained(op.getDropped(), int64_t(dim)) ? 1 : destination.getShape()[next++]);
  mlir::Type element = destination.getElementType();
  auto load = b.create<ir::TileLoadOp>(loc, mlir::RankedTensorType::get(window, element), op.getSource(),
                                       op.getOffsets(), mlir::ValueRange(), Value(), op.getInbounds());
  load->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  Value tile = load;
  if (!op.getDropped().empty())
    tile = b.create<ir::ReshapeOp>(loc, mlir::RankedTensorType::get(destination.getShape(), element), tile,
                                   mlir::ValueRange());
  llvm::SmallVector<Value> origin(destination.getRank(), Value());
  for (Value& offset : origin)
    offset = b.create<mlir::arith::ConstantIndexOp>(loc, 0);
  b.create<ir::TileStoreOp>(loc, tile, op.getDestination(), origin, /*inbounds=*/true);
  op.erase();
}

struct ExpandStagingPass : mlir::PassWrapper<ExpandStagingPass, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandStagingPass)
  llvm::StringRef getArgument() const override { return "vx-expand-staging"; }
  llvm::StringRef getDescription() const override { return "turns staged copies into plain ones"; }
  void runOnOperation() override { expandStaging(getOperation()); }
};

}  // namespace

void expandStaging(mlir::ModuleOp module) {
  module.walk([](mlir::Operation* op) {
    if (auto copy = llvm::dyn_cast<ir::StageCopyOp>(op))
      expand(copy);
    else if (llvm::isa<ir::StageCommitOp, ir::StageWaitOp>(op))
      op->erase();
  });
}

std::unique_ptr<mlir::Pass> createExpandStagingPass() { return std::make_unique<ExpandStagingPass>(); }

}  // namespace vortex::passes
