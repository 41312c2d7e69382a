// Staged copies into shared memory, the waits of sync_block(), and tiles that threads read by element.
#include "irgen/emitter.h"

#include "lang/sema/kernel/roots.h"

namespace vortex::irgen {

using lang::Expr;
using lang::ExprKind;
using mlir::Location;
using mlir::Value;

/// `stage.args[0]` names memory, mostly a slice of it: the copy starts at the slice's offsets, so that what lies outside reads as zero.
void Emitter::emitStage(const Expr& stage, llvm::ArrayRef<Value> destinations) {
  Location at = loc(stage);
  const Expr* source = stage.args[0];
  while (source->kind == ExprKind::Deref && source->args[0]->kind == ExprKind::Ref)
    source = source->args[0]->args[0];
  if (!stage.ints.empty())
    b_.create<ir::BarrierOp>(at);
  llvm::SmallVector<Value, 1> views;
  llvm::SmallVector<Value> offsets;
  llvm::SmallVector<int64_t> dropped;
  bool isWindow = source->kind == ExprKind::Slice && !lang::isFieldOfElements(*source);
  if (isWindow) {
    views = evalViews(*source->args[0]);
    SliceWindow parts = window(*source);
    offsets = parts.offsets;
    dropped = parts.dropped;
  } else {
    views = evalViews(*source);
    offsets.assign(llvm::cast<ir::ViewType>(views[0].getType()).getRank(), math_.index(at, 0));
  }
  offsets = indicesIn(at, views[0], offsets);
  for (auto [view, destination] : llvm::zip(views, destinations)) {
    bool inside = !(isWindow && context_.guardOf(*source) == lang::Guard::Guarded) && !cutViews_.contains(view);
    auto copy = b_.create<ir::StageCopyOp>(at, view, offsets, destination, dropped, inside);
    if (isWindow)
      noteSlice(copy, *source);
  }
}

/// In kernels that stage, every barrier closes a group of copies and waits for those that the code up to the next one needs.
void Emitter::emitBarrier(const Expr& expr) {
  Location at = loc(expr);
  if (!expr.ints.empty()) {
    b_.create<ir::StageCommitOp>(at);
    b_.create<ir::StageWaitOp>(at, expr.ints[1]);
  }
  b_.create<ir::BarrierOp>(at, expr.builtin == lang::Builtin::SyncGrid ? argument(*context_.gridBarrier) : Value());
}

/// The tile's elements in shared memory, filled before the open thread region.
Value Emitter::spillTile(Location loc, Value tile) {
  Value& view = region_->spilled[tile];
  if (view)
    return view;
  auto type = llvm::cast<mlir::RankedTensorType>(tile.getType());
  if (!type.hasStaticShape()) {
    context_.failed = true;
    mlir::emitError(loc)
        << "the extents of a tile that threads read by element must be known when the kernel is compiled";
  }
  mlir::OpBuilder::InsertionGuard guard(b_);
  b_.setInsertionPoint(region_->op);
  auto viewType = ir::ViewType::get(b_.getContext(), type.getShape(), type.getElementType(), ir::Space::Shared, {});
  view = b_.create<ir::AllocOp>(loc, viewType, b_.getStringAttr("tile"));
  llvm::SmallVector<Value> origin(type.getRank(), Value());
  for (Value& offset : origin)
    offset = math_.index(loc, 0);
  b_.create<ir::TileStoreOp>(loc, tile, view, origin, /*inbounds=*/true);
  b_.create<ir::BarrierOp>(loc);
  return view;
}

}  // namespace vortex::irgen
