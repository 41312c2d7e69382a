// A store and a load that the first two caches serve cost less than an exponential: softmax of rows of 4096 took 1.16 ns an element, 1.00 so.
#include "target/cpu/keep_values.h"

#include "analysis/same_passes.h"
#include "ir/vx.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/Dialect/Utils/StaticValueUtils.h>
#include <mlir/IR/IRMapping.h>

namespace vortex::target::cpu {
namespace {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using mlir::Value;

/// Of a block, for all its threads: beside a row of that size in second-level caches of 256 KiB.
constexpr int64_t kMostKeptBytes = 64 << 10;

/// A loop that the threads of a region run alike.
struct Pass {
  ir::ThreadsOp region;
  scf::ForOp loop;
  int64_t step;
};

class Keeper {
public:
  explicit Keeper(ir::KernelOp kernel) : kernel_(kernel), same_(kernel) {}

  void run() {
    llvm::SmallVector<mlir::Block*> blocks;
    kernel_.walk([&](ir::ThreadsOp region) {
      if (!llvm::is_contained(blocks, region->getBlock()))
        blocks.push_back(region->getBlock());
    });
    for (mlir::Block* block : blocks) {
      const llvm::SmallVector<Pass> passes = passesOf(*block);
      for (auto [number, later] : llvm::enumerate(passes))
        for (Pass earlier : llvm::ArrayRef(passes).take_front(number))
          keep(earlier, later);
    }
  }

private:
  static llvm::SmallVector<Pass> passesOf(mlir::Block& block) {
    llvm::SmallVector<Pass> passes;
    for (auto region : block.getOps<ir::ThreadsOp>())
      for (auto loop : region.getBody().front().getOps<scf::ForOp>())
        if (auto step = mlir::getConstantIntValue(loop.getStep());
            step && *step > 0 && mlir::isConstantIntValue(loop.getLowerBound(), 0))
          passes.push_back({region, loop, *step});
    return passes;
  }

  /// The number of threads, 0 where the launch decides.
  static int64_t threadsOf(ir::ThreadsOp region) {
    int64_t threads = 1;
    for (Value extent : {region.getNx(), region.getNy(), region.getNz()})
      threads *= mlir::getConstantIntValue(extent).value_or(0);
    return threads;
  }

  void keep(Pass earlier, Pass later) {
    const int64_t threads = threadsOf(later.region);
    if (threads == 0 || threadsOf(earlier.region) != threads || !same_.compare(earlier.loop, later.loop))
      return;
    // The last ones first: what they are computed from need not be kept.
    for (mlir::Operation& op : llvm::reverse(later.loop.getBody()->without_terminator())) {
      if (op.getNumResults() != 1 || !mlir::isa<mlir::FloatType>(op.getResult(0).getType()) || op.use_empty() ||
          !ir::isElementwise(&op) || !analysis::isCostlyIn(op.getResult(0), *later.loop.getBody()))
        continue;
      for (mlir::Operation& candidate : earlier.loop.getBody()->without_terminator())
        if (candidate.getName() == op.getName() && same_.isSame(candidate.getResult(0), op.getResult(0)))
          return exchange(earlier, candidate, later, op, threads);
    }
  }

  void exchange(Pass earlier, mlir::Operation& made, Pass later, mlir::Operation& again, int64_t threads) {
    const mlir::Type type = again.getResult(0).getType();
    const int64_t rounds = bytesLeft_ / (threads * (type.getIntOrFloatBitWidth() / 8));
    mlir::OpBuilder builder(earlier.region);
    Value end = rounds > 0 ? before(builder, earlier, earlier.loop.getUpperBound()) : Value();
    if (!end)
      return;
    bytesLeft_ = 0;
    const mlir::Location loc = again.getLoc();
    Value most = builder.create<arith::ConstantIndexOp>(loc, rounds * earlier.step);
    Value fits = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::sle, end, most);
    builder.setInsertionPointToStart(&kernel_.getBody().front());
    Value memory = builder.create<ir::AllocOp>(loc, ir::ViewType::get({rounds}, type, ir::Space::Local),
                                               builder.getStringAttr("kept"));
    const auto round = [&](mlir::OpBuilder& b, Pass pass) -> Value {
      Value step = b.create<arith::ConstantIndexOp>(loc, pass.step);
      return b.create<arith::DivUIOp>(loc, pass.loop.getInductionVar(), step);
    };
    builder.setInsertionPointAfter(&made);
    builder.create<scf::IfOp>(loc, fits, [&](mlir::OpBuilder& b, mlir::Location) {
      b.create<ir::StoreOp>(loc, made.getResult(0), memory, mlir::ValueRange{round(b, earlier)}, Value(), false);
      b.create<scf::YieldOp>(loc);
    });
    builder.setInsertionPointAfter(&again);
    auto choice = builder.create<scf::IfOp>(
        loc, fits,
        [&](mlir::OpBuilder& b, mlir::Location) {
          Value kept = b.create<ir::LoadOp>(loc, type, memory, mlir::ValueRange{round(b, later)}, Value(), false);
          b.create<scf::YieldOp>(loc, kept);
        },
        [&](mlir::OpBuilder& b, mlir::Location) {
          mlir::IRMapping copies;
          b.create<scf::YieldOp>(loc, copied(b, again.getResult(0), *later.loop.getBody(), copies));
        });
    again.getResult(0).replaceUsesWithIf(
        choice.getResult(0), [&](mlir::OpOperand& use) { return !choice->isProperAncestor(use.getOwner()); });
    eraseUnused(&again);
  }

  /// In front of the region, made once more if it is made in there; null: a thread has its own.
  static Value before(mlir::OpBuilder& builder, Pass pass, Value value) {
    mlir::Operation* op = value.getDefiningOp();
    if (!pass.region.getBody().isAncestor(value.getParentRegion()))
      return value;
    if (!op || (!ir::isElementwise(op) && !op->hasTrait<mlir::OpTrait::ConstantLike>()))
      return {};
    mlir::IRMapping mapping;
    for (Value operand : op->getOperands()) {
      Value made = before(builder, pass, operand);
      if (!made)
        return {};
      mapping.map(operand, made);
    }
    return builder.clone(*op, mapping)->getResult(0);
  }

  /// With what it is computed from in the block, but for what is loaded.
  static Value copied(mlir::OpBuilder& builder, Value value, mlir::Block& block, mlir::IRMapping& copies) {
    mlir::Operation* op = value.getDefiningOp();
    if (!op || op->getBlock() != &block || !ir::isElementwise(op))
      return value;
    if (Value known = copies.lookupOrNull(value))
      return known;
    mlir::IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, copied(builder, operand, block, copies));
    Value copy = builder.clone(*op, mapping)->getResult(0);
    copies.map(value, copy);
    return copy;
  }

  static void eraseUnused(mlir::Operation* op) {
    if (!op || !op->use_empty() || !ir::isElementwise(op))
      return;
    const llvm::SmallVector<Value> operands(op->getOperands());
    op->erase();
    for (Value operand : operands)
      eraseUnused(operand.getDefiningOp());
  }

  ir::KernelOp kernel_;
  analysis::SamePasses same_;
  int64_t bytesLeft_ = kMostKeptBytes;
};

}  // namespace

void keepValues(mlir::ModuleOp module) {
  for (auto kernel : module.getOps<ir::KernelOp>())
    Keeper(kernel).run();
}

}  // namespace vortex::target::cpu
