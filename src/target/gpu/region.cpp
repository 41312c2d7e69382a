// vx.threads: the body once per slot, and operations between the lanes of a warp.
#include "ir/index_cast.h"
#include "target/gpu/access.h"
#include "target/gpu/lowering.h"

#include <llvm/ADT/TypeSwitch.h>

namespace vortex::target::gpu {

namespace vxt = ir::vxt;
namespace arith = mlir::arith;

void Lowering::lowerThreads(ir::ThreadsOp op) {
  mlir::Location at = loc;
  llvm::SmallVector<Values> inputs;
  for (Value input : op.getInputs())
    inputs.push_back(tiles_->threadValues(input));
  tiles_->flushReads(op);
  op.getBody().walk([&](mlir::Operation* inner) {
    forEachAccess(inner, [&](Value view, bool isWrite) {
      Value root = rootOf(view);
      isWrite ? hazards_.write(root, Hazards::Kind::Region) : hazards_.read(root, Hazards::Kind::Region);
    });
  });
  Value count = mul(mul(scalar(op.getNx()), scalar(op.getNy())), scalar(op.getNz()));
  llvm::SmallVector<Values> outputs(op.getNumResults());
  for (unsigned slot = 0; slot < slots_; ++slot) {
    loc = at;
    Region region{slot, logicalId(slot), count};
    auto known = constantOf(count);
    bool full = known && threads_ && int64_t(slot + 1) * threads_ <= *known;
    auto body = [&] { return lowerSlot(op, region, inputs); };
    Values yielded;
    if (full) {
      yielded = body();
    } else if (op.getNumResults() == 0) {
      emitIf(less(region.linear, count), [&] { body(); });
    } else {
      yielded = emitIf(less(region.linear, count), body, [&] {
        Values zeros;
        for (Value output : op.getOutputs())
          zeros.push_back(zero(mlir::getElementTypeOrSelf(output.getType())));
        return zeros;
      });
    }
    for (auto [output, value] : llvm::zip(outputs, yielded))
      output.push_back(value);
  }
  loc = at;
  for (auto [output, values] : llvm::zip(op.getOutputs(), outputs))
    tiles_->bindThreadValues(output, values);
}

Values Lowering::lowerSlot(ir::ThreadsOp op, Region region, llvm::ArrayRef<Values> inputs) {
  mlir::Block& block = op.getBody().front();
  Value nx = scalar(op.getNx()), ny = scalar(op.getNy()), nz = scalar(op.getNz());
  auto isOne = [&](Value extent) { return constantOf(extent) == 1; };
  // Threads of a block fit 32 bits, where division is cheap.
  auto narrow = [&](Value value) -> Value {
    if (auto known = constantOf(value))
      return i32(*known);
    return ir::fromIndex(b, loc, b.getI32Type(), value);
  };
  auto wide = [&](Value value) -> Value { return b.create<arith::IndexCastUIOp>(loc, b.getIndexType(), value); };
  Value ids[3] = {constant(0), constant(0), constant(0)};
  Value rest = region.linear;
  for (auto [axis, extent] : llvm::enumerate(std::array{nx, ny, nz})) {
    if (isOne(extent))
      continue;
    bool isLast = (axis == 0 && isOne(ny) && isOne(nz)) || (axis == 1 && isOne(nz)) || axis == 2;
    if (isLast) {
      ids[axis] = rest;
      break;
    }
    Value from = narrow(rest), by = narrow(extent);
    ids[axis] = wide(b.create<arith::RemUIOp>(loc, from, by));
    rest = wide(b.create<arith::DivUIOp>(loc, from, by));
  }
  for (unsigned axis = 0; axis < 3; ++axis)
    setScalar(block.getArgument(axis), ids[axis]);
  setScalar(block.getArgument(3), region.linear);
  for (auto [i, values] : llvm::enumerate(inputs))
    setScalar(block.getArgument(4 + i), values[region.slot]);
  region_ = region;
  SharedScope scope(shared_);
  lowerBlock(block);
  Values yielded;
  for (Value value : block.getTerminator()->getOperands())
    yielded.push_back(scalar(value));
  region_.reset();
  return yielded;
}

//===-- warps -------------------------------------------------------------------------------------------------===//

/// Threads of this warp that exist (i32 bits); null: all 32.
Value Lowering::warpMask() {
  auto known = constantOf(region_->count);
  if (known && *known % vxt::kWarpThreads == 0)
    return nullptr;
  Value first = b.create<arith::AndIOp>(loc, region_->linear, constant(-vxt::kWarpThreads));
  Value left = sub(region_->count, first);
  Value isFull = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::uge, left, constant(vxt::kWarpThreads));
  Value count = ir::fromIndex(b, loc, b.getI32Type(), left);
  Value bits = b.create<arith::SubIOp>(loc, b.create<arith::ShLIOp>(loc, i32(1), count), i32(1));
  return select(isFull, i32(-1), bits);
}

/// The lane a shuffle reads exists in the block (i1); null: always.
Value Lowering::sourceExists(ir::ShuffleKind kind, Value lane) {
  Value mask = warpMask();
  if (!mask)
    return nullptr;
  Value own = ir::fromIndex(b, loc, b.getI32Type(),
                            b.create<arith::AndIOp>(loc, region_->linear, constant(vxt::kWarpThreads - 1)));
  Value source;
  switch (kind) {
  case ir::ShuffleKind::Xor: source = b.create<arith::XOrIOp>(loc, own, lane); break;
  case ir::ShuffleKind::Up: source = b.create<arith::SubIOp>(loc, own, lane); break;
  case ir::ShuffleKind::Down: source = b.create<arith::AddIOp>(loc, own, lane); break;
  case ir::ShuffleKind::Index: source = lane; break;
  }
  Value inWarp = b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, source, i32(vxt::kWarpThreads));
  Value bit = b.create<arith::AndIOp>(
      loc, b.create<arith::ShRUIOp>(loc, mask, b.create<arith::AndIOp>(loc, source, i32(vxt::kWarpThreads - 1))),
      i32(1));
  return both(inWarp, b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, bit, i32(0)));
}

/// Butterfly over the lanes that exist. In a partial warp only the lanes of the lower half of each exchange see everything, lane 0 always
/// does: its value goes to all.
Value Lowering::warpReduce(ir::Combine kind, Value value) {
  Value mask = warpMask();
  for (int64_t distance = vxt::kWarpThreads / 2; distance > 0; distance /= 2) {
    Value exists = sourceExists(ir::ShuffleKind::Xor, i32(distance));
    Value other = b.create<vxt::ShuffleOp>(loc, value.getType(), ir::ShuffleKind::Xor, value, i32(distance), mask);
    Value both = combine(kind, value, other);
    value = exists ? select(exists, both, value) : both;
  }
  if (mask)
    value = b.create<vxt::ShuffleOp>(loc, value.getType(), ir::ShuffleKind::Index, value, i32(0), mask);
  return value;
}

void Lowering::lowerWarp(mlir::Operation* op) {
  if (!region_)
    return fail(op, "warp operations outside per-thread code");
  llvm::TypeSwitch<mlir::Operation*>(op)
      .Case([&](ir::WarpBarrierOp) { b.create<vxt::WarpBarrierOp>(loc, warpMask()); })
      .Case([&](ir::FenceOp fence) { b.create<vxt::FenceOp>(loc, fence.getOrder(), fence.getScope()); })
      .Case([&](ir::WarpShuffleOp shuffle) {
        Value value = scalar(shuffle.getValue()), lane = scalar(shuffle.getLane());
        Value exists = sourceExists(shuffle.getKind(), lane);
        Value other = b.create<vxt::ShuffleOp>(loc, value.getType(), shuffle.getKind(), value, lane, warpMask());
        setScalar(shuffle, exists ? select(exists, other, value) : other);
      })
      .Case(
          [&](ir::WarpReduceOp reduce) { setScalar(reduce, warpReduce(reduce.getKind(), scalar(reduce.getValue()))); })
      .Case([&](ir::WarpVoteOp vote) {
        setScalar(vote,
                  b.create<vxt::VoteOp>(loc, vote.getType(), vote.getKind(), scalar(vote.getPredicate()), warpMask()));
      });
}

}  // namespace vortex::target::gpu
