#include "target/gpu/lowering.h"

#include "target/gpu/coarsening.h"
#include "target/gpu/interior.h"
#include "target/gpu/join_lanes.h"
#include "target/gpu/keep_rows.h"
#include "target/gpu/neighbours.h"
#include "target/gpu/unrolling.h"

#include "base/check.h"
#include "ir/location.h"
#include "ir/size_attr.h"
#include "target/gpu/access.h"
#include "target/gpu/thread_tiles.h"
#include "target/gpu/versions.h"
#include "target/interface/describe.h"
#include "target/interface/faults.h"

#include <llvm/ADT/TypeSwitch.h>
#include <mlir/IR/Matchers.h>

#include <numeric>

namespace vortex::target::gpu {

namespace vxt = ir::vxt;
namespace arith = mlir::arith;

static ir::SizeAttr product(ir::KernelOp phase) {
  ir::SizeAttr total = ir::sizeConstant(phase.getContext(), 1);
  for (ir::SizeAttr extent : phase.getBlock()->getAsRange<ir::SizeAttr>())
    total = ir::sizeBinary(size::Op::Mul, total, extent);
  return total;
}

static bool touchesTiles(mlir::Operation* op) {
  auto isTile = [](mlir::Type type) { return mlir::isa<mlir::RankedTensorType>(type); };
  return llvm::any_of(op->getOperandTypes(), isTile) || llvm::any_of(op->getResultTypes(), isTile);
}

Lowering::Lowering(ModuleState& moduleState, ir::KernelOp phaseOp, llvm::StringRef symbol, Assumptions assumptions)
    : state(moduleState), phase(phaseOp), b(phaseOp.getContext()), loc(phaseOp.getLoc()), symbol_(symbol),
      assumptions_(assumptions), hazards_([this] { b.create<vxt::BarrierOp>(loc); }),
      shared_(hazards_, moduleState.chip.sharedBytesPerBlock,
              [this] {
                mlir::FileLineColLoc at = ir::fileLocation(loc);
                return at ? at.getLine() : 0;
              }),
      lifetimes_(phaseOp) {
  tiles_ = state.makeTiles ? state.makeTiles(*this) : std::make_unique<ThreadTiles>(*this);
}

Lowering::~Lowering() = default;

/// Hardware threads of the block and logical threads per hardware thread.
void Lowering::chooseThreads() {
  bool hasRegions = false, hasTiles = false;
  phase.walk([&](mlir::Operation* op) {
    hasRegions |= mlir::isa<ir::ThreadsOp>(op);
    hasTiles |= !mlir::isa<ir::ThreadsOp, mlir::scf::ForOp, mlir::scf::IfOp, mlir::scf::WhileOp, mlir::scf::YieldOp,
                           mlir::scf::ConditionOp>(op) &&
                touchesTiles(op);
  });
  const int64_t warp = vxt::kWarpThreads, most = state.chip.maxThreadsPerBlock;
  ir::SizeAttr logical = product(phase);
  std::optional<int64_t> known = hasRegions ? ir::constantSize(logical) : std::optional<int64_t>(1);
  logicalCount_ = known;
  if (hasTiles)
    threads_ = tiles_->chooseThreads(phase, hasRegions ? known : std::nullopt);
  if (!threads_ && known) {
    const int64_t together = hasRegions ? coarsen(phase, *known) : 1;
    if (together > 1 && assumptions_.wholeRows.empty()) {
      lanes_ = together;
      betterWhole_.merge(argumentsOfLanes(phase, together));
    }
    slots_ = std::max<int64_t>(llvm::divideCeil(*known, most), together);
    threads_ = std::max<int64_t>(llvm::alignTo(llvm::divideCeil(*known, slots_), warp), warp);
  }
  if (threads_ && known)
    slots_ = std::max<int64_t>(llvm::divideCeil(*known, threads_), 1);
  if (slots_ > kMaxSlots)
    fail(phase, "blocks of " + llvm::Twine(*known) + " threads (at most " + llvm::Twine(kMaxSlots * most) + " on " +
                    state.chip.name + ")");
  if (hasTiles && hasRegions && !known)
    fail(phase, "tiles in a kernel whose block size is not known before the launch");
  using Op = size::Op;
  mlir::MLIRContext* context = phase.getContext();
  if (threads_) {
    threadsAttr_ = ir::sizeConstant(context, threads_);
    return;
  }
  ir::SizeAttr warps = ir::sizeBinary(Op::CeilDiv, logical, ir::sizeConstant(context, warp));
  threadsAttr_ = ir::sizeBinary(Op::Max, ir::sizeBinary(Op::Mul, warps, ir::sizeConstant(context, warp)),
                                ir::sizeConstant(context, warp));
  size::Table& sizes = state.kernel.sizes;
  artifact::Constraint fits;
  fits.condition = sizes.add(size::make(Op::Less, logical.getExpr(), most + 1));
  fits.message = "a block of {0} threads is too large: the device runs at most " + std::to_string(most);
  fits.operands.push_back(sizes.add(logical.getExpr()));
  state.kernel.constraints.push_back(std::move(fits));
}

void Lowering::addLongRows(ir::SizeAttr when) {
  longRows_ = longRows_ ? ir::sizeBinary(size::Op::And, longRows_, when) : when;
}

static bool hasThreads(ir::KernelOp phase) {
  return phase.walk([](ir::ThreadsOp) { return mlir::WalkResult::interrupt(); }).wasInterrupted();
}

vxt::KernelOp Lowering::run() {
  joinNeighbours(phase);
  unrollStreams(phase);
  wide_ = findWideAccesses(phase);
  chooseThreads();
  if (!state.error.empty())
    return nullptr;
  llvm::SmallVector<mlir::Type> slotTypes;
  auto pointer = vxt::PtrType::get(phase.getContext(), ir::Space::Global);
  for (mlir::Type type : phase.getArgumentTypes()) {
    auto view = mlir::dyn_cast<ir::ViewType>(type);
    slotTypes.push_back(view ? pointer : type);
    if (view)
      slotTypes.append(2 * view.getRank(), b.getIndexType());
  }
  b.setInsertionPointToEnd(state.module.getBody());
  kernel_ = b.create<vxt::KernelOp>(loc, symbol_, b.getFunctionType(slotTypes, {}), mlir::ArrayAttr(),
                                    mlir::ArrayAttr(), threadsAttr_, 0, 0);
  mlir::Block* body = b.createBlock(&kernel_.getBody());
  for (mlir::Type type : slotTypes)
    body->addArgument(type, loc);
  lowerArguments();
  if (!tiles_->lowerPhase()) {
    lowerBlock(phase.getBody().front());
    tiles_->leaveScope();
  }
  b.create<vxt::ReturnOp>(loc);
  describePieces();
  kernel_.setSharedBytes(shared_.peak());
  if (phase->hasAttr(kKeptRows) && threads_) {
    const int64_t blocks = int64_t(state.chip.registersPerCore) / (kRegistersWithRows * threads_);
    kernel_->setAttr(kBlocksMark, b.getI64IntegerAttr(std::max<int64_t>(blocks, 1)));
  }
  if (tailBytes_) {
    constexpr int64_t kAlignment = 128;
    int64_t fixed = static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(shared_.peak()), kAlignment));
    kernel_.setSharedBytes(fixed);
    kernel_->setAttr(kSharedTail, tailBytes_);
    for (vxt::SharedOp tail : tails_)
      tail.setOffset(fixed);
  }
  if (shared_.peak() > int64_t(state.chip.sharedBytesPerBlock) && state.error.empty())
    state.error = ir::describeLocation(phase) + ": `" + state.kernel.name + "` needs " +
                  std::to_string(shared_.peak()) + " bytes of shared memory per block, " +
                  std::string(state.chip.name) + " has " + std::to_string(state.chip.sharedBytesPerBlock);
  if (state.error.empty() && hasThreads(phase))
    straightenInterior(kernel_);
  return state.error.empty() ? kernel_ : nullptr;
}

/// Code in several versions takes its pieces in each of them: they are told once.
void Lowering::describePieces() {
  for (const SharedMemory::Piece& piece : shared_.pieces()) {
    artifact::SharedTensor told;
    told.type = piece.what;
    told.firstLine = told.line = piece.firstLine;
    told.lastLine = piece.lastLine;
    told.bytes = static_cast<uint64_t>(piece.bytes);
    told.offset = static_cast<uint64_t>(piece.offset);
    told.isCompilers = true;
    auto isSame = [&](const artifact::SharedTensor& other) {
      return other.isCompilers && other.type == told.type && other.bytes == told.bytes && other.offset == told.offset &&
             other.firstLine == told.firstLine && other.lastLine == told.lastLine;
    };
    if (!piece.what.empty() && llvm::none_of(sharedTensors_, isSame))
      sharedTensors_.push_back(std::move(told));
  }
}

/// Whether any op of the phase writes through the argument.
static bool isWritten(ir::KernelOp phase, Value argument) {
  bool written = false;
  phase.walk([&](mlir::Operation* op) {
    forEachAccess(op, [&](Value view, bool isWrite) { written |= isWrite && rootOf(view) == argument; });
  });
  return written;
}

void Lowering::lowerArguments() {
  unsigned slot = 0;
  mlir::Block& body = kernel_.getBody().front();
  for (mlir::BlockArgument argument : phase.getBody().getArguments()) {
    auto type = mlir::dyn_cast<ir::ViewType>(argument.getType());
    if (!type) {
      setScalar(argument, body.getArgument(slot++));
      continue;
    }
    View view;
    view.elementType = type.getElementType();
    view.pointer = body.getArgument(slot);
    view.root = argument;
    view.readOnly = !isWritten(phase, argument);
    unsigned rank = type.getRank();
    for (unsigned dim = 0; dim < rank; ++dim)
      view.extents.push_back(type.isDynamic(dim) ? Value(body.getArgument(slot + 1 + dim))
                                                 : constant(type.getShape()[dim]));
    // Results and temporaries are allocated by the launch: row-major without gaps, or fields of structs that follow each other.
    int64_t pitch = innermostStride(state.kernel, argument.getArgNumber());
    bool isParam = argument.getArgNumber() < state.kernel.params.size();
    const bool isAligned = assumptions_.alignsRows(argument.getArgNumber());
    for (unsigned dim = 0; dim < rank; ++dim)
      view.strides.push_back(body.getArgument(slot + 1 + rank + dim));
    if (rank > 0)
      view.rowDim = rowsOf(phase, argument.getArgNumber()).dim;
    if (rank > 0 && (!isParam || assumptions_.unitStrides || isAligned))
      view.strides[view.rowDim] = constant(pitch);
    view.alignedRows = pitch == 1 && (isAligned || hasAlignedRows(phase, argument.getArgNumber()));
    view.alignment = view.alignedRows ? 16 : 0;
    view.wholeRows = rank > 0 && isWholeRow(view, view.rowDim,
                                            assumptions_.wholeRows.contains(argument.getArgNumber()) ||
                                                hasAlignedRows(phase, argument.getArgNumber()));
    slot += 1 + 2 * rank;
    setView(argument, std::move(view));
  }
}

//===-- values ------------------------------------------------------------------------------------------------===//

Value Lowering::scalar(Value vx) {
  if (Value lowered = values_.lookupOrNull(vx))
    return lowered;
  if (auto constantOp = vx.getDefiningOp<arith::ConstantOp>()) {
    // Made where it is first used; every use has its own.
    return b.create<arith::ConstantOp>(loc, mlir::cast<mlir::TypedAttr>(constantOp.getValue()));
  }
  VORTEX_CHECK(!state.error.empty(), "a value is used before it was lowered");
  return zero(vx.getType());
}

const View& Lowering::view(Value vx) {
  auto found = views_.find(vx);
  VORTEX_CHECK(found != views_.end(), "a view is used before it was lowered");
  return found->second;
}

Value Lowering::threadId() { return b.create<vxt::ThreadIdOp>(loc, b.getIndexType()); }
Value Lowering::lane() { return rem(threadId(), constant(vxt::kWarpThreads)); }
Value Lowering::warp() { return div(threadId(), constant(vxt::kWarpThreads)); }
Value Lowering::logicalId(unsigned slot) { return slot == 0 ? threadId() : add(threadId(), constant(slot * threads_)); }
Value Lowering::sharedPointer(const SharedMemory::Piece& piece) {
  return b.create<vxt::SharedOp>(loc, vxt::PtrType::get(b.getContext(), ir::Space::Shared), piece.offset);
}

Value Lowering::sharedTail(ir::SizeAttr bytes) {
  tailBytes_ = tailBytes_ ? ir::sizeBinary(size::Op::Max, tailBytes_, bytes) : bytes;
  tails_.push_back(b.create<vxt::SharedOp>(loc, vxt::PtrType::get(b.getContext(), ir::Space::Shared), 0));
  return tails_.back();
}

Value Lowering::blockDim(unsigned axis) { return size(mlir::cast<ir::SizeAttr>((*phase.getBlock())[axis])); }

Value Lowering::size(ir::SizeAttr attribute) {
  using Op = size::Op;
  mlir::Block& body = kernel_.getBody().front();
  return size::fold<Value>(attribute.getExpr(), [&](const size::Node& node, const std::array<Value, 3>& operands) {
    auto [x, y, _] = operands;
    switch (node.op) {
    case Op::Constant: return constant(node.value);
    case Op::Dim:
    case Op::Stride: return Value(body.getArgument(ir::slotOf(node, phase.getArgumentTypes())));
    case Op::Scalar: {
      Value argument = body.getArgument(ir::slotOf(node, phase.getArgumentTypes()));
      bool isIndex = argument.getType().isIndex();
      return isIndex ? argument : b.create<arith::IndexCastOp>(loc, b.getIndexType(), argument).getResult();
    }
    case Op::Add: return add(x, y);
    case Op::Sub: return sub(x, y);
    case Op::Mul: return mul(x, y);
    case Op::FloorDiv: return div(x, y);  // sizes are not negative
    case Op::CeilDiv: return div(add(x, sub(y, constant(1))), y);
    case Op::Mod: return rem(x, y);
    case Op::Min: return min(x, y);
    case Op::Max: return b.create<arith::MaxSIOp>(loc, x, y).getResult();
    default: fail(phase, "a block size that compares arguments"); return constant(0);
    }
  });
}

//===-- ops ---------------------------------------------------------------------------------------------------===//

void Lowering::lowerBlock(mlir::Block& block) {
  for (mlir::Operation& op : block)
    if (!op.hasTrait<mlir::OpTrait::IsTerminator>()) {
      lowerOp(&op);
      if (!region_)
        tiles_->lowered(&op);
      for (mlir::Operation* alloc : lifetimes_.endingAfter(&op)) {
        tiles_->flushStores();
        endLifetime(mlir::cast<ir::AllocOp>(alloc));
      }
    }
}

void Lowering::lowerOp(mlir::Operation* op) {
  loc = op->getLoc();
  if (op->getNumRegions() != 0 && tiles_->defers(op))
    return;
  if (auto loop = mlir::dyn_cast<mlir::scf::ForOp>(op))
    return lowerFor(loop);
  if (auto branch = mlir::dyn_cast<mlir::scf::IfOp>(op))
    return lowerIf(branch);
  if (auto loop = mlir::dyn_cast<mlir::scf::WhileOp>(op))
    return lowerWhile(loop);
  if (auto region = mlir::dyn_cast<ir::ThreadsOp>(op))
    return lowerThreads(region);
  if (touchesTiles(op))
    return tiles_->lower(op);
  if (mlir::isa<arith::ConstantOp>(op))
    return;  // made at their uses
  mlir::StringRef dialect = op->getName().getDialectNamespace();
  if (dialect == "arith" || dialect == "math" || dialect == "vector" || ir::isElementwise(op) ||
      mlir::isa<mlir::func::CallOp>(op)) {
    for (Value operand : op->getOperands())
      if (!values_.contains(operand))
        values_.map(operand, scalar(operand));
    b.clone(*op, values_);
    for (Value operand : op->getOperands())
      if (operand.getDefiningOp<arith::ConstantOp>())
        values_.erase(operand);
    return;
  }
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case<ir::LoadOp, ir::StoreOp, ir::AtomicRmwOp, ir::AtomicCasOp, ir::AtomicLoadOp, ir::AtomicStoreOp>(
          [&](auto) { lowerMemory(op); })
      .Case([&](ir::AllocOp alloc) { lowerAlloc(alloc); })
      .Case([&](ir::SubviewOp subview) { lowerSubview(subview); })
      .Case([&](ir::DimOp dim) { setScalar(dim, view(dim.getView()).extents[dim.getDim()]); })
      .Case([&](ir::BlockIdOp id) { setScalar(id, b.create<vxt::BlockIdOp>(loc, b.getIndexType(), id.getAxisAttr())); })
      .Case([&](ir::GridDimOp dim) {
        setScalar(dim, b.create<vxt::GridDimOp>(loc, b.getIndexType(), dim.getAxisAttr()));
      })
      .Case([&](ir::BlockDimOp dim) { setScalar(dim, blockDim(unsigned(dim.getAxis()))); })
      .Case([&](ir::BarrierOp barrier) {
        tiles_->flushReads(op);
        if (!barrier.getGrid())
          return hazards_.barrier();
        b.create<vxt::GridBarrierOp>(loc, view(barrier.getGrid()).pointer);
        hazards_.restore(Hazards::State());
      })
      .Case([&](ir::StageCopyOp copy) { lowerStageCopy(copy); })
      .Case([&](ir::StageCommitOp) { b.create<vxt::AsyncCommitOp>(loc); })
      .Case([&](ir::StageWaitOp wait) { b.create<vxt::AsyncWaitOp>(loc, wait.getPending()); })
      .Case([&](ir::AssertOp check) { lowerAssert(check); })
      .Case([&](ir::PrintOp print) {
        if (region_)
          return lowerPrint(print);
        once([&] { lowerPrint(print); });
      })
      .Case<ir::WarpBarrierOp, ir::FenceOp, ir::WarpShuffleOp, ir::WarpReduceOp, ir::WarpVoteOp>(
          [&](auto) { lowerWarp(op); })
      .Default([&](mlir::Operation* other) { fail(other, "this operation"); });
}

void Lowering::once(llvm::function_ref<void()> body) {
  Value first = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, threadId(), constant(0));
  emitIf(first, body);
}

//===-- faults and prints -------------------------------------------------------------------------------------===//

void Lowering::fail(mlir::Operation* op, const llvm::Twine& message) {
  if (!state.error.empty())
    return;
  std::string location = ir::describeLocation(op);
  state.error = (location.empty() ? "" : location + ": ") + "the GPU back end does not support " + message.str() +
                " (" + op->getName().getStringRef().str() + ")";
}

uint32_t Lowering::addFault(mlir::Operation* op, llvm::StringRef id, llvm::StringRef message) {
  return target::addFault(state.kernel.faults, op, id, message);
}

/// Floats as f64 bits, integers extended to 64 bits.
static Value printBits(mlir::OpBuilder& b, mlir::Location loc, Value value, bool isUnsigned) {
  mlir::Type i64 = b.getI64Type(), type = value.getType();
  if (mlir::isa<mlir::FloatType>(type)) {
    if (!type.isF64())
      value = b.create<arith::ExtFOp>(loc, b.getF64Type(), value);
    return b.create<arith::BitcastOp>(loc, i64, value);
  }
  if (type.isIndex())
    return b.create<arith::IndexCastUIOp>(loc, i64, value);
  if (type.isInteger(64))
    return value;
  if (isUnsigned || type.isInteger(1))
    return b.create<arith::ExtUIOp>(loc, i64, value);
  return b.create<arith::ExtSIOp>(loc, i64, value);
}

Values Lowering::printedBits(mlir::ValueRange values, llvm::ArrayRef<bool> isUnsigned) {
  Values bits;
  for (auto [i, value] : llvm::enumerate(values))
    bits.push_back(printBits(b, loc, scalar(value), i < isUnsigned.size() && isUnsigned[i]));
  return bits;
}

void Lowering::lowerPrint(ir::PrintOp print) {
  uint32_t format =
      target::addValues(state.kernel.faults, print, print.getFormat(), print.getValues(), print.getIsUnsigned());
  b.create<vxt::PrintOp>(loc, format, printedBits(print.getValues(), print.getIsUnsigned()));
}

void Lowering::lowerAssert(ir::AssertOp check) {
  if (!check.getValues().empty())
    target::addValues(state.kernel.faults, check, check.getMessage(), check.getValues(), check.getIsUnsigned());
  uint32_t fault = addFault(check, check.getId(), check.getMessage());
  b.create<vxt::AssertOp>(loc, scalar(check.getCondition()), fault,
                          printedBits(check.getValues(), check.getIsUnsigned()));
}

}  // namespace vortex::target::gpu
