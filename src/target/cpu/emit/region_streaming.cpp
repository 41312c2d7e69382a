// Hints to the memory system: what thread regions will read next, and outputs that no cache can hold.
#include "target/cpu/emit/region_emitter.h"

namespace vortex::target::cpu::emit {

using llvm::Value;

/// The rows of a two-dimensional block are short pieces of long rows, and the hardware follows only a few such streams at once. The next
/// block reads what follows along x; blocks run in that order.
void RegionEmitter::prefetchNextBlock(const Access& access) {
  if (access.ahead) {
    Value* next = ir_.CreateAdd(access.offset.value, access.ahead);
    return emitPrefetch(ir_, elementPointer(ir_, access.type, access.pointer, next),
                        shape_.width * elementBytes(access.type));
  }
  if (!shape_.rows || isOne(dims_[1]) || access.blockPrivate || !e_.unitStrides ||
      !mlir::isa<ir::KernelOp>(region_->getParentOp()))
    return;
  Value* next = ir_.CreateAdd(access.offset.value, dims_[0]);
  emitPrefetch(ir_, elementPointer(ir_, access.type, access.pointer, next), shape_.width * elementBytes(access.type));
}

/// How much more a value is in the next block along x, i64: null for nothing, none where it is not known.
std::optional<Value*> RegionEmitter::growthByBlock(mlir::Value value) {
  mlir::Operation* op = value.getDefiningOp();
  if (!op) {
    auto argument = mlir::cast<mlir::BlockArgument>(value);
    auto loop = mlir::dyn_cast<mlir::scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop)
      return argument == loop.getInductionVar() && growthByBlock(loop.getLowerBound()) == nullptr
                 ? std::optional<Value*>(nullptr)
                 : std::nullopt;
    return mlir::isa<ir::KernelOp, ir::ThreadsOp>(argument.getOwner()->getParentOp()) ? std::optional<Value*>(nullptr)
                                                                                      : std::nullopt;
  }
  if (auto id = mlir::dyn_cast<ir::BlockIdOp>(op))
    return id.getAxis() == ir::Axis::X ? ir_.getInt64(1) : nullptr;
  if (op->hasTrait<mlir::OpTrait::ConstantLike>() || mlir::isa<ir::DimOp, ir::GridDimOp, ir::BlockDimOp>(op))
    return nullptr;
  if (!mlir::isa<mlir::arith::AddIOp, mlir::arith::MulIOp, mlir::arith::ExtSIOp, mlir::arith::ExtUIOp,
                 mlir::arith::IndexCastOp, mlir::arith::IndexCastUIOp>(op))
    return std::nullopt;
  llvm::SmallVector<Value*, 2> by;
  for (mlir::Value operand : op->getOperands()) {
    const std::optional<Value*> growth = growthByBlock(operand);
    if (!growth)
      return std::nullopt;
    by.push_back(*growth);
  }
  if (by.size() == 1 || (!by[0] && !by[1]))
    return by[0];
  if (mlir::isa<mlir::arith::AddIOp>(op))
    return !by[0] ? by[1] : !by[1] ? by[0] : ir_.CreateAdd(by[0], by[1]);
  if (by[0] && by[1])
    return std::nullopt;
  const Lane factor = lane(op->getOperand(by[0] ? 1 : 0));
  if (!factor.isUniform())
    return std::nullopt;
  return ir_.CreateMul(by[0] ? by[0] : by[1], ir_.CreateSExtOrTrunc(factor.value, ir_.getInt64Ty()));
}

static mlir::Value rootOf(mlir::Value view) {
  while (auto subview = view.getDefiningOp<ir::SubviewOp>())
    view = subview.getSource();
  return view;
}

/// The last of several loops of a block that read the same memory: what it finds is in the caches, and nobody asks the memory for anything.
static bool isLastOfSeveralPasses(ir::LoadOp op) {
  auto region = op->getParentOfType<ir::ThreadsOp>();
  auto kernel = mlir::dyn_cast_or_null<ir::KernelOp>(region->getParentOp());
  auto loop = op->getParentOfType<mlir::scf::ForOp>();
  if (!kernel || !loop || loop->getParentOp() != region)
    return false;
  const mlir::Value root = rootOf(op.getView());
  ir::LoadOp last;
  bool isReadBefore = false;
  kernel.walk([&](ir::LoadOp load) {
    if (rootOf(load.getView()) != root)
      return;
    auto its = load->getParentOfType<mlir::scf::ForOp>();
    isReadBefore = isReadBefore || (its && its != loop && load->getParentOfType<ir::ThreadsOp>());
    last = load;
  });
  return last == op && isReadBefore;
}

/// While the last pass over a row computes, the next block's row comes: blocks run in the order of x. Longer rows leave no room for two in the
/// cache; the distance is 0 then, and the access asks for what it has.
Value* RegionEmitter::distanceToNextBlock(ir::LoadOp op, const Access& access) {
  constexpr int64_t kRowBytes = 64 << 10;
  if (access.blockPrivate || shape_.rows || shape_.width == 1 || !mlir::isa<mlir::BlockArgument>(access.root) ||
      !isLastOfSeveralPasses(op))
    return nullptr;
  const View& window = e_.view(access.root);
  Value* distance = nullptr;
  for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
    const std::optional<Value*> growth = op.getView() == access.root ? growthByBlock(index) : std::nullopt;
    if (!growth)
      return nullptr;
    if (!*growth)
      continue;
    Value* step = ir_.CreateMul(*growth, window.strides[dim]);
    distance = distance ? ir_.CreateAdd(distance, step) : step;
  }
  if (!distance)
    return nullptr;
  Value* fits = ir_.CreateICmpULE(distance, ir_.getInt64(kRowBytes / elementBytes(access.type)));
  return ir_.CreateSelect(fits, distance, ir_.getInt64(0));
}

/// Something besides per-thread stores uses the view.
static bool mayBeRead(mlir::Value view) {
  return llvm::any_of(view.getUsers(), [&](mlir::Operation* user) {
    if (auto subview = mlir::dyn_cast<ir::SubviewOp>(user))
      return mayBeRead(subview.getResult());
    return !mlir::isa<ir::StoreOp, ir::DimOp>(user);
  });
}

/// Other blocks may wait for what this one writes; streaming stores are not ordered before the atomic that tells them.
static bool hasAtomics(ir::KernelOp kernel) {
  return kernel
      .walk([](mlir::Operation* op) {
        return mlir::isa<ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp, ir::AtomicStoreOp, ir::FenceOp>(op)
                   ? mlir::WalkResult::interrupt()
                   : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// i1: the view is too large for the caches. Null: never, or warps do not fill whole cache lines.
Value* RegionEmitter::wantsStreaming(const Access& access) {
  uint64_t bytes = elementBytes(access.type);
  if (access.blockPrivate || !e_.unitStrides || shape_.width * bytes % 64 != 0 ||
      !mlir::isa<mlir::BlockArgument>(access.root) || mayBeRead(access.root) || hasAtomics(e_.kernel))
    return nullptr;
  Value* size = ir_.getInt64(int64_t(bytes));
  for (Value* extent : e_.view(access.root).extents)
    size = ir_.CreateMul(size, extent);
  return ir_.CreateICmpUGE(size, ir_.getInt64(kStreamBytes));
}

}  // namespace vortex::target::cpu::emit
