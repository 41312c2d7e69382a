// On an H200 a softmax of rows of 4096 by 256 threads takes 1.03 of a copy's time from registers and 1.22 where each pass loads the row again.
#include "target/gpu/keep_rows.h"

#include "analysis/same_passes.h"
#include "ir/index_cast.h"
#include "ir/vxt.h"
#include "target/gpu/access.h"
#include "target/gpu/kept_pass.h"
#include "target/gpu/plain_iterations.h"
#include "target/gpu/straight.h"
#include "vortex/rows.h"

#include <llvm/ADT/SetVector.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/Utils/StaticValueUtils.h>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using mlir::Value;

namespace {

/// Of one iteration of one pass.
constexpr int64_t kMostOperations = 100;
constexpr llvm::StringLiteral kKept = "vx.kept";

using Values = llvm::SmallVector<Value>;

int64_t registersOf(mlir::Operation* op) {
  return std::max<int64_t>(1, ir::vxt::scalarBytes(op->getResult(0).getType()) / 4);
}

bool isPass(scf::ForOp loop) {
  auto step = mlir::getConstantIntValue(loop.getStep());
  Traffic traffic;
  return !loop->hasAttr(kKept) && step && *step > 0 && *step < (1 << 20) && isCount(loop.getLowerBound()) &&
         loop.getInductionVar().getType().isIndex() &&
         !loop.getBody()
              ->walk([](mlir::LoopLikeOpInterface) { return mlir::WalkResult::interrupt(); })
              .wasInterrupted() &&
         addTraffic(*loop.getBody(), writtenRoots(loop), traffic) && traffic.operations <= kMostOperations;
}

/// The passes of a group, in the order in which they run.
class Keeper {
public:
  Keeper(analysis::SamePasses& same, llvm::SmallVector<scf::ForOp> loops) : same_(same) {
    for (scf::ForOp loop : loops)
      passes_.emplace_back().loop = loop;
  }

  bool run() {
    for (size_t number = 0; number < passes_.size(); ++number)
      findKept(number);
    iterations_ = iterationsKept();
    if (iterations_ < kRowTogether)
      return false;
    for (size_t number = 0; number < passes_.size(); ++number)
      if (!passes_[number].given.empty() || !passes_[number].kept.empty())
        write(number);
    return true;
  }

private:
  /// From the last operation to the first: what only kept values are computed from is not needed.
  void findKept(size_t number) {
    RowPass& pass = passes_[number];
    mlir::Block& block = *pass.loop.getBody();
    for (mlir::Operation& op : llvm::reverse(block)) {
      const bool isNeeded = !mlir::isPure(&op) && !mlir::isa<ir::LoadOp>(op);
      if (!isNeeded && !op.hasTrait<mlir::OpTrait::IsTerminator>() &&
          llvm::none_of(op.getUsers(), [&](mlir::Operation* user) {
            return pass.needed.contains(block.findAncestorOpInBlock(*user));
          }))
        continue;
      if (findMade(number, op))
        continue;
      pass.needed.insert(&op);
    }
  }

  bool findMade(size_t number, mlir::Operation& op) {
    RowPass& pass = passes_[number];
    auto load = mlir::dyn_cast<ir::LoadOp>(op);
    const bool isKept = load
                            ? same_.isConstant(load)
                            : op.getNumResults() == 1 && mlir::isa<mlir::FloatType>(op.getResult(0).getType()) &&
                                  ir::isElementwise(&op) && analysis::isCostlyIn(op.getResult(0), *pass.loop.getBody());
    for (size_t earlier = 0; isKept && earlier < number; ++earlier) {
      same_.compare(passes_[earlier].loop, pass.loop);
      for (mlir::Operation& made : passes_[earlier].loop.getBody()->without_terminator())
        if (passes_[earlier].needed.contains(&made) && made.getName() == op.getName() &&
            same_.isSame(made.getResult(0), op.getResult(0))) {
          pass.kept.push_back({&op, earlier, &made});
          passes_[earlier].given.insert(&made);
          return true;
        }
    }
    return false;
  }

  /// As many as leave what is kept at a time in the registers.
  int64_t iterationsKept() {
    int64_t most = 0;
    for (size_t number = 1; number < passes_.size(); ++number) {
      llvm::SetVector<mlir::Operation*> alive;
      for (RowPass& later : llvm::MutableArrayRef(passes_).drop_front(number))
        for (const Kept& kept : later.kept)
          if (kept.pass < number)
            alive.insert(kept.made);
      int64_t registers = 0;
      for (mlir::Operation* op : alive)
        registers += registersOf(op);
      most = std::max(most, registers);
    }
    return most == 0 ? 0 : static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(kRowRegisters / most)));
  }

  void write(size_t number);
  Values takenBy(size_t number, size_t from);
  void give(size_t number);

  analysis::SamePasses& same_;
  std::vector<RowPass> passes_;
  int64_t iterations_ = 0;
};

/// The region once more, with these results beside its own. `values` are the new ones, in the region.
ir::ThreadsOp withResults(ir::ThreadsOp region, mlir::ValueRange values) {
  auto yield = mlir::cast<ir::YieldOp>(region.getBody().front().getTerminator());
  yield.getValuesMutable().append(values);
  llvm::SmallVector<mlir::Type> types(region.getResultTypes());
  for (Value value : values)
    types.push_back(mlir::RankedTensorType::get({mlir::ShapedType::kDynamic}, value.getType()));
  mlir::OpBuilder b(region);
  auto made = b.create<ir::ThreadsOp>(region.getLoc(), types, region.getNx(), region.getNy(), region.getNz(),
                                      region.getInputs());
  made->setDiscardableAttrs(region->getDiscardableAttrDictionary());
  made.getBody().takeBody(region.getBody());
  region->replaceAllUsesWith(made->getResults().take_front(region.getNumResults()));
  region.erase();
  return made;
}

/// What pass `from` gives, in the region of a later one: whether it keeps rows, then by value and iteration.
Values Keeper::takenBy(size_t number, size_t from) {
  RowPass &pass = passes_[number], &source = passes_[from];
  ir::ThreadsOp region = pass.region();
  if (source.region() == region)
    return source.values;
  Values arguments;
  for (Value value : source.left) {
    region.getInputsMutable().append(value);
    mlir::Type type = mlir::getElementTypeOrSelf(value.getType());
    arguments.push_back(region.getBody().addArgument(type, region.getLoc()));
  }
  return arguments;
}

void Keeper::write(size_t number) {
  RowPass& pass = passes_[number];
  llvm::SmallDenseMap<size_t, Values> taken;
  Values given;
  llvm::SmallVector<llvm::ArrayRef<Value>> rows;
  for (const Kept& kept : pass.kept) {
    auto [from, isNew] = taken.try_emplace(kept.pass);
    if (isNew) {
      from->second = takenBy(number, kept.pass);
      given.push_back(from->second.front());
    }
  }
  const auto iterations = static_cast<size_t>(iterations_);
  for (const Kept& kept : pass.kept) {
    const auto& order = passes_[kept.pass].given.getArrayRef();
    const auto place = static_cast<size_t>(llvm::find(order, kept.made) - order.begin());
    rows.push_back(llvm::ArrayRef(taken[kept.pass]).slice(1 + place * iterations, iterations));
  }
  writeKept(pass, iterations_, given, rows);
  const bool leaves = llvm::any_of(llvm::MutableArrayRef(passes_).drop_front(number + 1), [&](RowPass& later) {
    return later.region() != pass.region() &&
           llvm::any_of(later.kept, [&](const Kept& kept) { return kept.pass == number; });
  });
  if (leaves)
    pass.left = withResults(pass.region(), pass.values).getResults().take_back(pass.values.size());
}

/// Loops that load from one tensor which the kernel does not write.
bool mayShare(llvm::ArrayRef<scf::ForOp> loops, analysis::SamePasses& same) {
  llvm::DenseMap<Value, scf::ForOp> seen;
  for (scf::ForOp loop : loops)
    if (loop.walk([&](ir::LoadOp load) {
              const auto [found, isNew] = seen.try_emplace(rootOf(load.getView()), loop);
              return same.isConstant(load) && found->second != loop ? mlir::WalkResult::interrupt()
                                                                    : mlir::WalkResult::advance();
            })
            .wasInterrupted())
      return true;
  return false;
}

}  // namespace

bool keepRows(ir::KernelOp phase) {
  bool isChanged = false;
  analysis::SamePasses same(phase);
  llvm::SetVector<mlir::Block*> blocks;
  phase.walk([&](ir::ThreadsOp region) { blocks.insert(region->getBlock()); });
  for (mlir::Block* block : blocks) {
    llvm::SmallVector<llvm::SmallVector<scf::ForOp>> groups;
    for (auto region : block->getOps<ir::ThreadsOp>())
      for (auto loop : region.getBody().front().getOps<scf::ForOp>()) {
        if (!isPass(loop))
          continue;
        auto* group = llvm::find_if(groups, [&](auto& each) { return same.compare(each.front(), loop); });
        group == groups.end() ? groups.push_back({loop}) : group->push_back(loop);
      }
    for (llvm::SmallVector<scf::ForOp>& group : groups) {
      for (scf::ForOp loop : group)
        loop->setAttr(kKept, mlir::UnitAttr::get(loop.getContext()));
      if (!mayShare(group, same))
        continue;
      for (scf::ForOp loop : group)
        loop.walk([](scf::IfOp branch) { turnIntoMasks(branch); });  // inner ones first
      isChanged |= Keeper(same, group).run();
    }
  }
  if (isChanged)
    phase->setAttr(kKeptRows, mlir::UnitAttr::get(phase.getContext()));
  return isChanged;
}

}  // namespace vortex::target::gpu
