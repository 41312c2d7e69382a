// Hints to the memory system: what thread regions will read next, and outputs that no cache can hold.
#include "target/cpu/emit/region_emitter.h"

#include <llvm/ADT/MapVector.h>

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
std::optional<Value*> RegionEmitter::growthByBlock(mlir::Value value, Growths& known) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  const std::optional<Value*> growth = findGrowth(value, known);
  known[value] = growth;
  return growth;
}

std::optional<Value*> RegionEmitter::findGrowth(mlir::Value value, Growths& known) {
  const std::optional<Value*> none = nullptr, unknown = std::nullopt;
  mlir::Operation* op = value.getDefiningOp();
  if (!op) {
    auto argument = mlir::cast<mlir::BlockArgument>(value);
    mlir::Operation* owner = argument.getOwner()->getParentOp();
    if (auto loop = mlir::dyn_cast<mlir::scf::ForOp>(owner))
      return argument == loop.getInductionVar() && growthByBlock(loop.getLowerBound(), known) == none ? none : unknown;
    return mlir::isa<ir::KernelOp, ir::ThreadsOp>(owner) ? none : unknown;
  }
  if (auto id = mlir::dyn_cast<ir::BlockIdOp>(op))
    return id.getAxis() == ir::Axis::X ? std::optional<Value*>(ir_.getInt64(1)) : none;
  if (op->hasTrait<mlir::OpTrait::ConstantLike>() || mlir::isa<ir::DimOp, ir::GridDimOp, ir::BlockDimOp>(op))
    return none;
  if (!mlir::isa<mlir::arith::AddIOp, mlir::arith::MulIOp, mlir::arith::ExtSIOp, mlir::arith::ExtUIOp,
                 mlir::arith::IndexCastOp, mlir::arith::IndexCastUIOp>(op))
    return unknown;
  llvm::SmallVector<Value*, 2> by;
  for (mlir::Value operand : op->getOperands()) {
    const std::optional<Value*> growth = growthByBlock(operand, known);
    if (!growth)
      return unknown;
    by.push_back(*growth);
  }
  if (by.size() == 1 || (!by[0] && !by[1]))
    return by[0];
  if (mlir::isa<mlir::arith::AddIOp>(op))
    return !by[0] ? by[1] : !by[1] ? by[0] : ir_.CreateAdd(by[0], by[1]);
  if (by[0] && by[1])
    return unknown;
  const Lane factor = lane(op->getOperand(by[0] ? 1 : 0));
  if (!factor.isUniform())
    return unknown;
  return ir_.CreateMul(by[0] ? by[0] : by[1], ir_.CreateSExtOrTrunc(factor.value, ir_.getInt64Ty()));
}

static mlir::Value rootOf(mlir::Value view) {
  while (auto subview = view.getDefiningOp<ir::SubviewOp>())
    view = subview.getSource();
  return view;
}

/// Elements between a load and what it asks for: beside dear arithmetic few loads are in flight by themselves. GELU of 64 MB took 1.04 ns an
/// element, and 0.75 so.
static constexpr int64_t kPrefetchAhead = 1024;

static bool computesFunctions(mlir::Operation* code) {
  return code
      ->walk([](mlir::Operation* op) {
        return ir::isFloatFunction(op) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// Of several loops of a block that read the same memory the loads of one: what the later ones find is in the caches, and nobody asks the memory for
/// anything. The last that computes functions and writes no results, where memory is idle for longest; else the last of all.
static llvm::DenseSet<mlir::Operation*> lastPasses(ir::KernelOp kernel) {
  llvm::MapVector<mlir::Value, llvm::MapVector<mlir::Operation*, ir::LoadOp>> byRoot;  // the last load of each loop
  kernel.walk([&](ir::LoadOp load) {
    auto loop = load->getParentOfType<mlir::scf::ForOp>();
    const bool isPass =
        loop && mlir::isa<ir::ThreadsOp>(loop->getParentOp()) && loop->getParentOp()->getParentOp() == kernel;
    byRoot[rootOf(load.getView())][isPass ? loop.getOperation() : nullptr] = load;
  });
  const auto isIdle = [](mlir::Operation* loop) {
    const bool writes = loop->walk([](ir::StoreOp store) {
                              return store.getView().getType().getSpace() == ir::Space::Global
                                         ? mlir::WalkResult::interrupt()
                                         : mlir::WalkResult::advance();
                            })
                            .wasInterrupted();
    return !writes && computesFunctions(loop);
  };
  llvm::DenseSet<mlir::Operation*> last;
  for (auto& [root, byLoop] : byRoot) {
    llvm::SmallVector<std::pair<mlir::Operation*, ir::LoadOp>> passes;
    for (auto& [loop, load] : byLoop)
      if (loop)
        passes.emplace_back(loop, load);
    if (passes.size() < 2)
      continue;
    const auto idle = llvm::find_if(llvm::reverse(passes), [&](const auto& pass) { return isIdle(pass.first); });
    last.insert(idle == passes.rend() ? passes.back().second : idle->second);
  }
  return last;
}

/// Every lane loads once, and the arithmetic between loads is that of float functions.
bool RegionEmitter::isStreamOfFunctions(ir::LoadOp op) {
  for (mlir::Operation* parent = op->getParentOp(); parent != region_; parent = parent->getParentOp())
    if (mlir::isa<mlir::LoopLikeOpInterface>(parent))
      return false;
  if (!computesFunctions_)
    computesFunctions_ = computesFunctions(region_);
  return *computesFunctions_;
}

/// While a late pass over a row computes, the next block's row comes: blocks run in the order of x. Longer rows leave no room for two in the
/// cache; the distance is 0 then, and the access asks for what it has.
Value* RegionEmitter::distanceToNextBlock(ir::LoadOp op, const Access& access) {
  constexpr int64_t kRowBytes = 64 << 10;
  auto kernel = mlir::dyn_cast<ir::KernelOp>(region_->getParentOp());
  if (!kernel || access.blockPrivate || shape_.rows || shape_.width == 1 ||
      !mlir::isa<mlir::BlockArgument>(access.root))
    return nullptr;
  if (!lastPasses_)
    lastPasses_ = lastPasses(kernel);
  const bool isStream = isStreamOfFunctions(op);
  if (!isStream && !lastPasses_->contains(op))
    return nullptr;
  const View& window = e_.view(access.root);
  Value* distance = nullptr;
  Growths known;
  for (auto [dim, index] : llvm::enumerate(op.getIndices())) {
    const std::optional<Value*> growth = op.getView() == access.root ? growthByBlock(index, known) : std::nullopt;
    if (!growth)
      return nullptr;
    if (!*growth)
      continue;
    Value* step = ir_.CreateMul(*growth, window.strides[dim]);
    distance = distance ? ir_.CreateAdd(distance, step) : step;
  }
  if (!distance)
    return nullptr;
  if (isStream)
    return ir_.getInt64(kPrefetchAhead);
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
