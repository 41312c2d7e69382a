#include "target/gpu/unrolling.h"

#include "target/gpu/straight.h"

#include <llvm/ADT/SetVector.h>
#include <mlir/Analysis/SliceAnalysis.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/IR/IRMapping.h>
#include <mlir/IR/Matchers.h>
#include <mlir/Interfaces/LoopLikeInterface.h>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using mlir::Value;

namespace {

/// Bytes that a thread loads before it computes.
constexpr int64_t kLoadedTogether = 16;
constexpr int64_t kMostIterations = 8;
/// Of one unrolled body.
constexpr int64_t kMostInBody = 200;
constexpr llvm::StringLiteral kUnrolled = "vx.unrolled";

/// Not negative: a constant or a thread's own number.
bool isCount(Value value) {
  auto known = mlir::getConstantIntValue(value);
  auto argument = mlir::dyn_cast<mlir::BlockArgument>(value);
  return (known && *known >= 0) || (argument && mlir::isa<ir::ThreadsOp>(argument.getOwner()->getParentOp()));
}

/// Loops inside do not move: their bodies read what stands before them.
bool hasInnerLoop(scf::ForOp loop) {
  return loop.getBody()->walk([](mlir::LoopLikeOpInterface) { return mlir::WalkResult::interrupt(); }).wasInterrupted();
}

/// Iterations of the loop to be run together; 1: it stays. Loops of known length are unrolled as a whole later, where they are short.
int64_t iterationsTogether(scf::ForOp loop) {
  auto step = mlir::getConstantIntValue(loop.getStep());
  Traffic traffic;
  if (loop->hasAttr(kUnrolled) || !loop->getParentOfType<ir::ThreadsOp>() || !step || *step <= 0 ||
      !isCount(loop.getLowerBound()) || mlir::getConstantIntValue(loop.getUpperBound()) ||
      !loop.getInductionVar().getType().isIndex() || hasInnerLoop(loop) ||
      !addTraffic(*loop.getBody(), writtenRoots(loop), traffic) || traffic.loadedBytes == 0)
    return 1;
  int64_t together = 1;
  while (together < kMostIterations && together * traffic.loadedBytes < kLoadedTogether &&
         2 * together * traffic.operations <= kMostInBody)
    together *= 2;
  return together;
}

/// Loads first, with what their addresses and masks take, in the order in which they stand.
void hoistLoads(mlir::Block& block) {
  llvm::SetVector<mlir::Operation*> early;
  mlir::BackwardSliceOptions inside;
  inside.filter = [&](mlir::Operation* op) { return op->getBlock() == &block; };
  for (mlir::Operation& op : block)
    if (mlir::isa<ir::LoadOp>(op)) {
      mlir::getBackwardSlice(&op, &early, inside);
      early.insert(&op);
    }
  mlir::Operation* last = nullptr;
  for (mlir::Operation& op : llvm::make_early_inc_range(block))
    if (early.contains(&op)) {
      last ? op.moveAfter(last) : op.moveBefore(&block, block.begin());
      last = &op;
    }
}

/// Before the loop, one of so many iterations at a time; the loop itself does what is left.
void unroll(scf::ForOp loop, int64_t together) {
  mlir::OpBuilder b(loop);
  mlir::Location loc = loop.getLoc();
  auto constant = [&](int64_t value) -> Value { return b.create<arith::ConstantIndexOp>(loc, value); };
  const int64_t step = *mlir::getConstantIntValue(loop.getStep());
  Value end = b.create<arith::MaxSIOp>(loc, loop.getUpperBound(), loop.getLowerBound());
  Value last = b.create<arith::SubIOp>(loc, end, constant((together - 1) * step)), stride = constant(together * step);
  llvm::SmallVector<Value> initial(loop.getInitArgs());
  initial.push_back(loop.getLowerBound());
  auto iterations = [&](mlir::OpBuilder&, mlir::Location, Value first, mlir::ValueRange carried) {
    mlir::IRMapping mapping;
    mapping.map(loop.getRegionIterArgs(), carried.drop_back());
    llvm::SmallVector<Value> values;
    for (int64_t number = 0; number < together; ++number) {
      mapping.map(loop.getInductionVar(),
                  number ? b.create<arith::AddIOp>(loc, first, constant(number * step)) : first);
      for (mlir::Operation& op : loop.getBody()->without_terminator())
        b.clone(op, mapping);
      values.clear();
      for (Value value : loop.getYieldedValues())
        values.push_back(mapping.lookupOrDefault(value));
      mapping.map(loop.getRegionIterArgs(), values);
    }
    values.push_back(b.create<arith::AddIOp>(loc, first, stride));
    b.create<scf::YieldOp>(loc, values);
  };
  auto whole = b.create<scf::ForOp>(loc, loop.getLowerBound(), last, stride, initial, iterations);
  hoistLoads(*whole.getBody());
  loop.setLowerBound(whole.getResults().back());
  loop.getInitArgsMutable().assign(whole.getResults().drop_back());
  for (scf::ForOp each : {whole, loop})
    each->setAttr(kUnrolled, b.getUnitAttr());
}

}  // namespace

void unrollStreams(ir::KernelOp phase) {
  llvm::SmallVector<std::pair<scf::ForOp, int64_t>> loops;
  phase.walk([&](scf::ForOp loop) {
    if (int64_t together = iterationsTogether(loop); together > 1)
      loops.push_back({loop, together});
  });
  for (auto [loop, together] : loops) {
    loop.walk([](scf::IfOp branch) { turnIntoMasks(branch); });  // inner ones first
    unroll(loop, together);
  }
}

}  // namespace vortex::target::gpu
