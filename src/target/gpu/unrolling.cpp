#include "target/gpu/unrolling.h"

#include "target/gpu/plain_iterations.h"
#include "target/gpu/straight.h"

#include <llvm/ADT/SetVector.h>
#include <mlir/Analysis/SliceAnalysis.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/Vector/IR/VectorOps.h>
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

/// Adds what `op` is computed from in its block.
void addSources(mlir::Operation* op, llvm::SetVector<mlir::Operation*>& early) {
  mlir::BackwardSliceOptions inside;
  inside.filter = [op](mlir::Operation* source) { return source->getBlock() == op->getBlock(); };
  mlir::getBackwardSlice(op, &early, inside);
}

/// In the order in which they stand. Returns the last one; null: there are none.
mlir::Operation* moveToFront(mlir::Block& block, const llvm::SetVector<mlir::Operation*>& early) {
  mlir::Operation* last = nullptr;
  for (mlir::Operation& op : llvm::make_early_inc_range(block))
    if (early.contains(&op)) {
      last ? op.moveAfter(last) : op.moveBefore(&block, block.begin());
      last = &op;
    }
  return last;
}

/// Loads first, with what their addresses and masks take.
void hoistLoads(mlir::Block& block) {
  llvm::SetVector<mlir::Operation*> early;
  for (auto load : block.getOps<ir::LoadOp>()) {
    addSources(load, early);
    early.insert(load);
  }
  moveToFront(block, early);
}

/// Quotients by one divisor, as a vector: its reciprocal is taken once, and they do not wait for each other (nvidia/quotients.cpp).
void joinQuotients(mlir::Block& block) {
  llvm::MapVector<Value, llvm::SmallVector<arith::DivFOp>> byDivisor;
  for (auto quotient : block.getOps<arith::DivFOp>())
    if (quotient.getType().isF32() && quotient.getRhs().getParentBlock() != &block)
      byDivisor[quotient.getRhs()].push_back(quotient);
  for (auto& [divisor, quotients] : byDivisor) {
    if (quotients.size() < 2)
      continue;
    // Dividends come first, where nothing but loads that are early stands before them.
    llvm::SetVector<mlir::Operation*> early;
    for (arith::DivFOp quotient : quotients)
      addSources(quotient, early);
    const bool isPure =
        llvm::all_of(early, [](mlir::Operation* op) { return mlir::isPure(op) || mlir::isa<ir::LoadOp>(op); });
    if (!isPure || llvm::any_of(quotients, [&](arith::DivFOp quotient) { return early.contains(quotient); }))
      continue;
    mlir::Operation* last = moveToFront(block, early);
    mlir::OpBuilder b(block.getParentOp());
    last ? b.setInsertionPointAfter(last) : b.setInsertionPointToStart(&block);
    mlir::Location loc = quotients[0].getLoc();
    llvm::SmallVector<Value> dividends;
    for (arith::DivFOp quotient : quotients)
      dividends.push_back(quotient.getLhs());
    auto type = mlir::VectorType::get({static_cast<int64_t>(dividends.size())}, b.getF32Type());
    Value all = b.create<mlir::vector::FromElementsOp>(loc, type, dividends);
    Value divisors = b.create<mlir::vector::BroadcastOp>(loc, type, divisor);
    Value joined = b.create<arith::DivFOp>(loc, all, divisors, quotients[0].getFastmathAttr());
    for (auto [number, quotient] : llvm::enumerate(quotients))
      quotient.replaceAllUsesWith(Value(b.create<mlir::vector::ExtractOp>(loc, joined, static_cast<int64_t>(number))));
    for (arith::DivFOp quotient : quotients)  // the builder may stand in front of one of them
      quotient.erase();
  }
}

}  // namespace

void arrangeTogether(mlir::Block& block) {
  hoistLoads(block);
  joinQuotients(block);
}

namespace {

/// So many iterations at a time, as long as whole ones end before `end`, from where the loop begins; it then begins behind them. `plain`: what
/// holds in them; null: nothing is known.
void unrollBefore(scf::ForOp loop, int64_t together, Value end, const PlainIterations* plain) {
  mlir::OpBuilder b(loop);
  mlir::Location loc = loop.getLoc();
  auto constant = [&](int64_t value) -> Value { return b.create<arith::ConstantIndexOp>(loc, value); };
  const int64_t step = *mlir::getConstantIntValue(loop.getStep());
  end = b.create<arith::MaxSIOp>(loc, end, loop.getLowerBound());
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
      for (mlir::Operation& op : loop.getBody()->without_terminator()) {
        if (plain && plain->isTrue(op)) {
          mapping.map(op.getResult(0), b.create<arith::ConstantIntOp>(loc, 1, 1));
          continue;
        }
        mlir::Operation* made = b.clone(op, mapping);
        if (plain && plain->isInside(op))
          made->removeAttr("guarded");
      }
      values.clear();
      for (Value value : loop.getYieldedValues())
        values.push_back(mapping.lookupOrDefault(value));
      mapping.map(loop.getRegionIterArgs(), values);
    }
    values.push_back(b.create<arith::AddIOp>(loc, first, stride));
    b.create<scf::YieldOp>(loc, values);
  };
  auto whole = b.create<scf::ForOp>(loc, loop.getLowerBound(), last, stride, initial, iterations);
  arrangeTogether(*whole.getBody());
  loop.setLowerBound(whole.getResults().back());
  loop.getInitArgsMutable().assign(whole.getResults().drop_back());
  for (scf::ForOp each : {whole, loop})
    each->setAttr(kUnrolled, b.getUnitAttr());
}

/// Those of which all conditions are known, then those of which they are not, then what is left, one by one.
void unroll(scf::ForOp loop, int64_t together) {
  PlainIterations plain(loop);
  if (!plain.isEmpty())
    unrollBefore(loop, together, plain.end(loop.getUpperBound()), &plain);
  if (plain.isEmpty() || !loop->hasAttr(kLongRows))
    unrollBefore(loop, together, loop.getUpperBound(), nullptr);
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
