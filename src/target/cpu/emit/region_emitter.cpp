#include "target/cpu/emit/region_emitter.h"

#include "base/check.h"

#include <llvm/ADT/TypeSwitch.h>

namespace vortex::target::cpu::emit {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using llvm::Value;

static Value* product(llvm::IRBuilder<>& ir, llvm::ArrayRef<Value*> factors) {
  Value* result = ir.getInt64(1);
  for (Value* factor : factors)
    result = ir.CreateMul(result, factor);
  return result;
}

RegionEmitter::RegionEmitter(Emitter& emitter, ir::ThreadsOp region)
    : e_(emitter), ir_(emitter.ir), region_(region),
      dims_{emitter.scalar(region.getNx()), emitter.scalar(region.getNy()), emitter.scalar(region.getNz())},
      threads_(product(emitter.ir, dims_)), walk_(chooseWalk(emitter, region, dims_)), shape_(walk_.shape),
      analysis_(region, shape_), math_(emitter.ir, shape_.width) {}

void RegionEmitter::run() {
  for (mlir::Value input : region_.getInputs())
    inputs_.push_back(e_.tiles->materialize(input));
  e_.tiles->flushReads(region_);
  size::Expr bound = ir::sizeArena(region_.getContext()).constant(1);
  for (mlir::Value dim : {region_.getNx(), region_.getNy(), region_.getNz()}) {
    size::Expr size = e_.upperBound(dim);
    if (!size)
      return e_.fail(region_, "a thread count that is not known before the launch");
    bound = size::make(size::Op::Mul, bound, size);
  }
  for (mlir::Value output : region_.getOutputs())
    outputs_.push_back(
        e_.allocateTile(mlir::cast<mlir::RankedTensorType>(output.getType()).getElementType(), {threads_}, {bound}));
  emitWarps();
  for (auto [output, buffer] : llvm::zip(region_.getOutputs(), outputs_))
    e_.tiles->bind(output, buffer);
}

//===-- threads → warps ---------------------------------------------------------------------------------------===//

void RegionEmitter::emitWarps() {
  mlir::Block& block = region_.getBody().front();
  const auto whole = [&] {
    if (isWorthTwoVersions(block))
      emitBothVersions(block, [] {});
    else
      emitBlock(block);
  };
  if (!walk_.isShort)
    if (const std::optional<Sweep> sweep = planSweep(region_, analysis_, shape_, threads_); sweep && emitSwept(*sweep))
      return;
  if (!shape_.rows)
    return emitSpan(walk_.threads, [&](Value* base, Value* mask) { emitLinearWarp(base, mask, whole); });
  Value *zero = ir_.getInt64(0), *one = ir_.getInt64(1);
  emit::emitFor(ir_, zero, walk_.dims[2], one, [&](Value* z) {
    emit::emitFor(ir_, zero, walk_.dims[1], one, [&](Value* y) {
      Value* row = ir_.CreateMul(dims_[0], ir_.CreateAdd(y, ir_.CreateMul(dims_[1], z)));
      emitSpan(walk_.dims[0], [&](Value* x, Value* mask) {
        auto along = [&](Value* base) {
          return shape_.width == 1 ? Lane::uniform(base) : Lane::affine(base, ir_.getInt64(1));
        };
        emitWarp(along(x), Lane::uniform(y), Lane::uniform(z), along(ir_.CreateAdd(row, x)), mask, whole);
      });
    });
  });
}

/// Full warps without a mask, then at most one with the missing lanes masked off.
void RegionEmitter::emitSpan(Value* total, llvm::function_ref<void(Value* base, Value* mask)> body) {
  unsigned width = shape_.width;
  if (width == 1)
    return emit::emitFor(ir_, ir_.getInt64(0), total, ir_.getInt64(1), [&](Value* base) { body(base, nullptr); });
  Value* full = ir_.CreateAnd(total, ir_.getInt64(-int64_t(width)));
  auto* known = llvm::dyn_cast<llvm::ConstantInt>(full);
  if (known && known->getZExtValue() <= mostInLine() * width)
    for (uint64_t base = 0; base < known->getZExtValue(); base += width)
      body(ir_.getInt64(base), nullptr);
  else
    emit::emitFor(ir_, ir_.getInt64(0), full, ir_.getInt64(width), [&](Value* base) { body(base, nullptr); });
  emit::emitIf(ir_, ir_.CreateICmpSLT(full, total), [&] {
    Value* rest = ir_.CreateTrunc(ir_.CreateSub(total, full), ir_.getInt32Ty());
    body(full, ir_.CreateICmpULT(math_.iota(ir_.getInt32Ty()), splat(ir_, rest, width)));
  });
}

void RegionEmitter::emitLinearWarp(Value* base, Value* mask, llvm::function_ref<void()> body) {
  Lane linear = shape_.width == 1 ? Lane::uniform(base) : Lane::affine(base, ir_.getInt64(1));
  Lane zero = Lane::uniform(ir_.getInt64(0));
  Lane ids[3] = {zero, zero, zero};
  llvm::SmallVector<unsigned> axes;  // axes with more than one thread
  for (unsigned axis = 0; axis < 3; ++axis)
    if (!isOne(walk_.dims[axis]))
      axes.push_back(axis);
  if (axes.size() <= 1) {
    if (!axes.empty())
      ids[axes[0]] = linear;
    return emitWarp(ids[0], ids[1], ids[2], linear, mask, body);
  }
  if (shape_.width == 1 || shape_.insideRow) {
    Value* row = ir_.CreateUDiv(base, dims_[0]);
    Value* x = ir_.CreateURem(base, dims_[0]);
    ids[0] = shape_.width == 1 ? Lane::uniform(x) : Lane::affine(x, ir_.getInt64(1));
    ids[1] = Lane::uniform(ir_.CreateURem(row, dims_[1]));
    ids[2] = Lane::uniform(ir_.CreateUDiv(row, dims_[1]));
    return emitWarp(ids[0], ids[1], ids[2], linear, mask, body);
  }
  // 32 bits suffice for threads of a block, and vector division is dear.
  llvm::Type* i32 = ir_.getInt32Ty();
  llvm::Type* wide = llvm::FixedVectorType::get(ir_.getInt64Ty(), shape_.width);
  auto dim = [&](unsigned axis) { return splat(ir_, ir_.CreateTrunc(dims_[axis], i32), shape_.width); };
  Value* lanes = ir_.CreateAdd(splat(ir_, ir_.CreateTrunc(base, i32), shape_.width), math_.iota(i32));
  Value* row = ir_.CreateUDiv(lanes, dim(0));
  Value* numbers[] = {ir_.CreateURem(lanes, dim(0)), ir_.CreateURem(row, dim(1)), ir_.CreateUDiv(row, dim(1))};
  for (unsigned axis : axes)
    ids[axis] = Lane::varying(ir_.CreateZExt(numbers[axis], wide));
  emitWarp(ids[0], ids[1], ids[2], linear, mask, body);
}

void RegionEmitter::emitWarp(Lane x, Lane y, Lane z, Lane linear, Value* mask, llvm::function_ref<void()> body) {
  mlir::Block& block = region_.getBody().front();
  linear_ = linear;
  Lane ids[] = {x, y, z, linear};
  for (unsigned i = 0; i < 4; ++i)
    set(block.getArgument(i), ids[i]);
  withMask(mask, true, [&] {
    for (auto [i, buffer] : llvm::enumerate(inputs_)) {
      mlir::BlockArgument argument = block.getArgument(4 + i);
      if (argument.use_empty())
        continue;
      Value* pointer = elementPointer(ir_, buffer.elementType, buffer.pointer, linear.value);
      set(argument,
          math_.fromVector(emit::emitLoad(ir_, e_.features, buffer.elementType, pointer, shape_.width, mask)));
    }
    body();
  });
}

void RegionEmitter::emitYield(ir::YieldOp op) {
  for (auto [value, buffer] : llvm::zip(op.getValues(), outputs_)) {
    Value* pointer = elementPointer(ir_, buffer.elementType, buffer.pointer, linear_.value);
    emit::emitStore(ir_, e_.features, buffer.elementType, vector(value), pointer, shape_.width, mask_);
  }
}

//===-- values ------------------------------------------------------------------------------------------------===//

Lane RegionEmitter::lane(mlir::Value value) {
  auto found = values_.find(value);
  if (found == values_.end())
    return Lane::uniform(e_.scalar(value));
  return isFromOutside(value) ? ofLane(found->second) : found->second;
}

Value* RegionEmitter::pack(const Lane& lane, Form form) {
  if (form.kind == Form::Kind::Varying || form.kind == Form::Kind::Unknown)
    return math_.vector(lane);
  VORTEX_CHECK(lane.constantStride() == form.stride);
  return lane.value;
}

Lane RegionEmitter::unpack(Value* value, Form form) {
  switch (form.kind) {
  case Form::Kind::Uniform: return Lane::uniform(value);
  case Form::Kind::Affine: return Lane::affine(value, llvm::ConstantInt::getSigned(value->getType(), form.stride));
  default: return math_.fromVector(value);
  }
}

Value* RegionEmitter::fullMask() { return splat(ir_, ir_.getTrue(), shape_.width); }

/// A narrow number that grows along the lanes, until it wraps.
std::optional<Lane> RegionEmitter::extended(mlir::Operation* op, const Lane& narrow, bool isSigned) {
  llvm::Type* to = valueType(e_.context(), op->getResult(0).getType());
  if (!narrow.isAffine() || !to->isIntegerTy(64))
    return std::nullopt;
  Value* lanes = math_.vector(narrow);
  llvm::Type* wide = llvm::FixedVectorType::get(to, shape_.width);
  return math_.extended(narrow, isSigned ? ir_.CreateSExt(lanes, wide) : ir_.CreateZExt(lanes, wide), isSigned);
}

/// The number of a thread within its warp, or within a part of it. Warps begin at multiples of their width: of the block's threads, or of a
/// row's, where rows are walked one by one.
std::optional<Lane> RegionEmitter::laneNumber(mlir::Operation* op, llvm::ArrayRef<Lane> in) {
  mlir::Block& block = region_.getBody().front();
  const mlir::Value number = op->getOperand(0);
  const bool isFromWarp = number == block.getArgument(shape_.rows ? 0 : 3);
  auto* divisor = in[1].isUniform() ? llvm::dyn_cast<llvm::ConstantInt>(in[1].value) : nullptr;
  if (!isFromWarp || section_.op || !in[0].isAffine() || !divisor || divisor->isZero() ||
      shape_.width % divisor->getZExtValue() != 0)
    return std::nullopt;
  llvm::Type* type = in[0].value->getType();
  if (divisor->equalsInt(shape_.width))
    return Lane::affine(llvm::ConstantInt::get(type, 0), llvm::ConstantInt::get(type, 1));
  return Lane::varying(ir_.CreateURem(math_.iota(type), splat(ir_, divisor, shape_.width)));
}

/// Integer arithmetic that keeps lanes affine.
std::optional<Lane> RegionEmitter::emitAffine(mlir::Operation* op, llvm::ArrayRef<Lane> in) {
  auto cast = [&](auto resize) -> std::optional<Lane> {
    llvm::Type* to = valueType(e_.context(), op->getResult(0).getType());
    if (!in[0].isAffine() || to->getScalarSizeInBits() > in[0].value->getType()->getScalarSizeInBits())
      return std::nullopt;  // widening is not affine when the narrow value wraps
    return Lane::affine(resize(in[0].value, to), resize(in[0].stride, to));
  };
  auto truncate = [&](Value* value, llvm::Type* to) { return ir_.CreateTrunc(value, to); };
  return llvm::TypeSwitch<mlir::Operation*, std::optional<Lane>>(op)
      .Case([&](arith::AddIOp) {
        return in[0].isTracked() && in[1].isTracked() ? std::optional(math_.add(in[0], in[1])) : std::nullopt;
      })
      .Case([&](arith::SubIOp) {
        return in[0].mayBeSpaced() && in[1].mayBeSpaced() ? std::optional(math_.sub(in[0], in[1])) : std::nullopt;
      })
      .Case([&](arith::MulIOp) -> std::optional<Lane> {
        if (in[0].isTracked() && in[1].isTracked() && (in[0].isUniform() || in[1].isUniform()))
          return math_.mul(in[0], in[1]);
        return std::nullopt;
      })
      .Case([&](arith::RemUIOp) -> std::optional<Lane> { return laneNumber(op, in); })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>([&](auto) -> std::optional<Lane> {
        llvm::Type* to = valueType(e_.context(), op->getResult(0).getType());
        if ((in[0].isSpaced || in[0].places) && in[0].value->getType()->getScalarType() == to)
          return in[0];
        auto narrowed = cast(truncate);
        return narrowed || !in[0].isAffine() ? narrowed : extended(op, in[0], llvm::isa<arith::IndexCastOp>(op));
      })
      .Case([&](arith::TruncIOp) { return cast(truncate); })
      .Case([&](arith::ExtUIOp) { return extended(op, in[0], false); })
      .Case([&](arith::ExtSIOp) { return extended(op, in[0], true); })
      .Case([&](arith::CmpIOp compare) -> std::optional<Lane> {
        return math_.compare(integerPredicate(compare), in[0], in[1]);
      })
      .Case([&](arith::AndIOp) -> std::optional<Lane> {
        if (!op->getResult(0).getType().isInteger(1))
          return std::nullopt;
        return math_.andLanes(in[0], in[1]);
      })
      .Default([](mlir::Operation*) { return std::nullopt; });
}

void RegionEmitter::emitArith(mlir::Operation* op) {
  if (proven_.contains(op))
    return set(op->getResult(0), Lane::uniform(ir_.getTrue()));
  llvm::SmallVector<Lane> operands;
  bool uniform = true;
  for (mlir::Value operand : op->getOperands()) {
    operands.push_back(lane(operand));
    uniform &= operands.back().isUniform();
  }
  mlir::Value result = op->getResult(0);
  if (!uniform)
    if (auto affine = emitAffine(op, operands))
      return set(result, *affine);
  unsigned lanes = uniform ? 1 : shape_.width;
  Values values;
  for (const Lane& operand : operands)
    values.push_back(uniform ? operand.value : math_.vector(operand));
  Value* value = emitElementwise(ir_, e_.features, op, values, lanes);
  if (!value) {
    e_.fail(op, "this operation");
    value = llvm::PoisonValue::get(valueType(e_.context(), result.getType(), lanes));
  }
  set(result, uniform ? Lane::uniform(value) : Lane::varying(value));
}

//===-- dispatch ----------------------------------------------------------------------------------------------===//

void RegionEmitter::emitBlock(mlir::Block& block) {
  for (mlir::Operation& op : block)
    emitOp(&op);
}

void RegionEmitter::emitOp(mlir::Operation* op) {
  if (isElementwise(op))
    return emitArith(op);
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](scf::IfOp branch) { emitIf(branch); })
      .Case<scf::ForOp, scf::WhileOp>([&](auto loop) {
        ++loops_;
        if constexpr (std::is_same_v<decltype(loop), scf::ForOp>)
          emitFor(loop);
        else
          emitWhile(loop);
        --loops_;
      })
      .Case<scf::YieldOp, scf::ConditionOp, ir::WarpBarrierOp>([](auto) {})
      .Case([&](ir::FenceOp fence) { ir_.CreateFence(orderingOf(fence.getOrder())); })
      .Case([&](ir::YieldOp yield) { emitYield(yield); })
      .Case([&](ir::LoadOp load) { emitLoad(load); })
      .Case([&](ir::StoreOp store) { emitStore(store); })
      .Case([&](ir::AtomicRmwOp atomic) { emitAtomicRmw(atomic); })
      .Case([&](ir::AtomicCasOp atomic) { emitAtomicCas(atomic); })
      .Case([&](ir::AtomicLoadOp atomic) { emitAtomicLoad(atomic); })
      .Case([&](ir::AtomicStoreOp atomic) { emitAtomicStore(atomic); })
      .Case([&](ir::SubviewOp subview) { emitSubview(subview); })
      .Case([&](ir::AllocOp alloc) { emitAlloc(alloc); })
      .Case([&](ir::DimOp dim) { set(dim.getResult(), view(dim.getView()).extents[dim.getDim()]); })
      .Case([&](mlir::func::CallOp call) { emitCall(call); })
      .Case([&](ir::WarpReduceOp warp) { emitWarpReduce(warp); })
      .Case([&](ir::WarpVoteOp warp) { emitWarpVote(warp); })
      .Case([&](ir::WarpShuffleOp warp) { emitWarpShuffle(warp); })
      .Case([&](ir::BlockIdOp id) { set(id, Lane::uniform(e_.blockId[unsigned(id.getAxis())])); })
      .Case([&](ir::GridDimOp dim) { set(dim, Lane::uniform(e_.gridDim[unsigned(dim.getAxis())])); })
      .Case([&](ir::BlockDimOp dim) { set(dim, Lane::uniform(e_.blockDim[unsigned(dim.getAxis())])); })
      .Case([&](ir::AssertOp check) { emitAssert(check); })
      .Case([&](ir::PrintOp print) { emitPrint(print); })
      .Default([&](mlir::Operation* other) { e_.fail(other, "this operation in per-thread code"); });
}

void RegionEmitter::emitAssert(ir::AssertOp op) {
  uint32_t fault = e_.addFault(op, op.getId(), op.getMessage());
  Lane condition = lane(op.getCondition());
  Value *failed = ir_.CreateNot(condition.value), *lanes = mask_ ? mask_ : fullMask();
  if (condition.isUniform()) {
    if (mask_ && !maskNonEmpty_)
      failed = ir_.CreateAnd(failed, anyLane(ir_, mask_));
  } else {
    lanes = math_.andMask(failed, mask_);
    failed = anyLane(ir_, lanes);
  }
  e_.returnFaultIf(failed, fault, [&] {
    if (!op.getValues().empty())
      emitValues(op, op.getMessage(), op.getValues(), op.getIsUnsigned(), lanes);
  });
}

void RegionEmitter::emitPrint(ir::PrintOp op) {
  emitValues(op, op.getFormat(), op.getValues(), op.getIsUnsigned(), mask_ ? mask_ : fullMask());
}

/// The values of each of the lanes.
void RegionEmitter::emitValues(mlir::Operation* op, llvm::StringRef text, mlir::ValueRange values,
                               llvm::ArrayRef<bool> isUnsigned, Value* ofLanes) {
  Values bits;
  uint32_t fault = e_.addValues(op, text, values, isUnsigned);
  for (auto [i, value] : llvm::enumerate(values)) {
    llvm::AllocaInst* slot = nullptr;
    Value* lanes = e_.printBits(value.getType(), vector(value), i < isUnsigned.size() && isUnsigned[i]);
    if (shape_.width > 1) {
      slot = entryAlloca(ir_, lanes->getType());
      ir_.CreateStore(lanes, slot);
    }
    bits.push_back(slot ? slot : lanes);
  }
  if (shape_.width == 1)
    return e_.emitPrint(fault, bits);
  emitForActiveLanes(ir_, ofLanes, [&](Value* lane) {
    Values stored;
    for (Value* slot : bits)
      stored.push_back(ir_.CreateLoad(ir_.getInt64Ty(), ir_.CreateGEP(ir_.getInt64Ty(), slot, lane)));
    e_.emitPrint(fault, stored);
  });
}

}  // namespace vortex::target::cpu::emit
