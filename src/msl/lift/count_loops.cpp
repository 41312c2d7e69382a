#include "msl/lift/count_loops.h"

#include "ir/vx.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

namespace vortex::msl::lift {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using llvm::SmallVector;
using mlir::Value;

namespace {

constexpr llvm::StringLiteral kFits = "msl.fits32";  ///< on a loop: its counter's upper half is zero

/// What a loop counts.
struct Count {
  unsigned argument = 0;  ///< of the first region
  Value next, end;
  int64_t step = 0;
  bool isSigned = false;
};

class LoopCounter {
public:
  explicit LoopCounter(scf::WhileOp loop) : loop_(loop), condition_(loop.getConditionOp()), b_(loop) {}

  bool run() {
    std::optional<Count> count = match();
    if (!count)
      return false;
    rewrite(*count);
    return true;
  }

private:
  std::optional<Count> match() {
    if (!llvm::hasSingleElement(*loop_.getAfterBody()))
      return std::nullopt;
    auto compare = condition_.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!compare || compare->getBlock() != loop_.getBeforeBody())
      return std::nullopt;
    arith::CmpIPredicate predicate = compare.getPredicate();
    Count count{0, compare.getLhs(), compare.getRhs()};
    if (predicate == arith::CmpIPredicate::ugt || predicate == arith::CmpIPredicate::sgt)
      std::swap(count.next, count.end);
    else if (predicate != arith::CmpIPredicate::ult && predicate != arith::CmpIPredicate::slt)
      return std::nullopt;
    count.isSigned = predicate == arith::CmpIPredicate::slt || predicate == arith::CmpIPredicate::sgt;
    auto add = count.next.getDefiningOp<arith::AddIOp>();
    llvm::APInt step;
    if (!add || !loop_.isDefinedOutsideOfLoop(count.end) ||
        !mlir::matchPattern(add.getRhs(), mlir::m_ConstantInt(&step)))
      return std::nullopt;
    // What passes the largest number of the type begins anew below the end: such a loop never ends.
    auto counter = llvm::dyn_cast<mlir::BlockArgument>(add.getLhs());
    if (!counter || counter.getOwner() != loop_.getBeforeBody() || !counter.getType().isInteger(32) ||
        !step.isStrictlyPositive())
      return std::nullopt;
    count.argument = counter.getArgNumber();
    count.step = step.getSExtValue();
    if (carried(count.argument) != count.next)
      return std::nullopt;
    SmallVector<Value> next;
    for (unsigned i = 0; i < loop_.getInits().size(); ++i)
      next.push_back(carried(i));
    const bool isClosed = llvm::all_of(condition_.getArgs(), [&](Value passed) {
      return !llvm::isa<mlir::TensorType>(passed.getType()) || llvm::is_contained(next, chosen(passed, false));
    });
    return isClosed ? std::optional(count) : std::nullopt;
  }

  /// What the next round's argument is, as the loop goes on.
  Value carried(unsigned argument) {
    Value yielded = loop_.getYieldOp().getOperand(argument);
    auto passed = llvm::dyn_cast<mlir::BlockArgument>(yielded);
    if (!passed || passed.getOwner() != loop_.getAfterBody())
      return yielded;
    return chosen(condition_.getArgs()[passed.getArgNumber()], true);
  }

  /// `value` where the condition is known.
  Value chosen(Value value, bool goesOn) {
    auto select = value.getDefiningOp<arith::SelectOp>();
    if (!select || select.getCondition() != condition_.getCondition())
      return value;
    return goesOn ? select.getTrueValue() : select.getFalseValue();
  }

  Value toIndex(Value number, bool isSigned) {
    mlir::Location loc = loop_.getLoc();
    if (isSigned)
      return b_.create<arith::IndexCastOp>(loc, b_.getIndexType(),
                                           b_.create<arith::ExtSIOp>(loc, b_.getI64Type(), number));
    return b_.create<arith::IndexCastUIOp>(loc, b_.getIndexType(),
                                           b_.create<arith::ExtUIOp>(loc, b_.getI64Type(), number));
  }

  /// The loop stands where it is known to run once.
  bool isGuarded(Value first, const Count& count) {
    auto branch = llvm::dyn_cast<scf::IfOp>(loop_->getParentOp());
    auto compare = branch ? branch.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
    if (!compare)
      return false;
    const bool isThen = branch.thenBlock() == loop_->getBlock();
    using P = arith::CmpIPredicate;
    const auto says = [&](P forward, P backward) {
      return (compare.getPredicate() == forward && compare.getLhs() == first && compare.getRhs() == count.end) ||
             (compare.getPredicate() == backward && compare.getLhs() == count.end && compare.getRhs() == first);
    };
    if (isThen)
      return count.isSigned ? says(P::slt, P::sgt) : says(P::ult, P::ugt);
    if (count.isSigned ? says(P::sge, P::sle) : says(P::uge, P::ule))
      return true;
    return !count.isSigned && says(P::eq, P::eq) && mlir::matchPattern(first, mlir::m_Zero());
  }

  void rewrite(const Count& count) {
    mlir::Location loc = loop_.getLoc();
    Value first = loop_.getInits()[count.argument];
    Value lower = toIndex(first, count.isSigned), upper = toIndex(count.end, count.isSigned);
    if (!isGuarded(first, count)) {
      Value once = b_.create<arith::AddIOp>(loc, lower, b_.create<arith::ConstantIndexOp>(loc, 1));
      upper = b_.create<arith::MaxSIOp>(loc, upper, once);
    }
    // Carried are the arguments and, behind them, what results need besides.
    SmallVector<Value> initial(loop_.getInits()), next;
    for (unsigned i = 0; i < initial.size(); ++i)
      next.push_back(carried(i));
    SmallVector<unsigned> resultAt;
    for (Value passed : condition_.getArgs()) {
      Value last = chosen(passed, false);
      auto known = llvm::find(next, last);
      resultAt.push_back(static_cast<unsigned>(known - next.begin()));
      if (known == next.end()) {
        next.push_back(last);
        initial.push_back(b_.create<arith::ConstantOp>(loc, b_.getZeroAttr(last.getType())));
      }
    }
    auto made = b_.create<scf::ForOp>(loc, lower, upper, b_.create<arith::ConstantIndexOp>(loc, count.step), initial);
    if (!count.isSigned)
      made->setAttr(kFits, b_.getUnitAttr());
    mlir::Block* body = made.getBody();
    body->clear();
    b_.setInsertionPointToStart(body);
    Value wide = b_.create<arith::IndexCastUIOp>(loc, b_.getI64Type(), made.getInductionVar());
    Value counter = b_.create<arith::TruncIOp>(loc, b_.getI32Type(), wide);
    mlir::Block* before = loop_.getBeforeBody();
    for (mlir::BlockArgument argument : before->getArguments())
      argument.replaceAllUsesWith(
          argument.getArgNumber() == count.argument ? counter : made.getRegionIterArg(argument.getArgNumber()));
    for (Value& value : next)
      if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value); argument && argument.getOwner() == before)
        value = argument.getArgNumber() == count.argument ? counter : made.getRegionIterArg(argument.getArgNumber());
    condition_->remove();
    body->getOperations().splice(body->end(), before->getOperations());
    b_.setInsertionPointToEnd(body);
    b_.create<scf::YieldOp>(loc, next);
    for (auto [result, at] : llvm::zip(loop_.getResults(), resultAt))
      result.replaceAllUsesWith(made.getResult(at));
    condition_->destroy();
    loop_.erase();
  }

  scf::WhileOp loop_;
  scf::ConditionOp condition_;
  mlir::OpBuilder b_;
};

/// Which indices are below 2^32, and 2^31.
class Sizes {
public:
  explicit Sizes(const std::optional<std::array<int64_t, 3>>& block) : block_(block) {}

  bool fit(Value index, unsigned bits) const {
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(index)) {
      mlir::Operation* owner = argument.getOwner()->getParentOp();
      if (llvm::isa<ir::ThreadsOp>(owner))
        return argument.getArgNumber() < 4;
      auto loop = llvm::dyn_cast<scf::ForOp>(owner);
      if (loop && argument == loop.getInductionVar())
        return loop->hasAttr(kFits) && bits == 32;
      return llvm::isa<ir::KernelOp>(owner) && bits == 32;  // the grid's sizes: constraints of the launch
    }
    llvm::APInt number;
    if (mlir::matchPattern(index, mlir::m_ConstantInt(&number)))
      return number.isIntN(bits);
    mlir::Operation* op = index.getDefiningOp();
    if (llvm::isa<ir::BlockIdOp, ir::GridDimOp>(op))
      return bits == 32;
    if (llvm::isa<arith::MinUIOp>(op))
      return fit(op->getOperand(0), bits) || fit(op->getOperand(1), bits);
    if (llvm::isa<arith::RemUIOp>(op))
      return fit(op->getOperand(0), bits) || fit(op->getOperand(1), bits);
    if (llvm::isa<arith::DivUIOp>(op))
      return fit(op->getOperand(0), bits);
    return bits == 32 && isPosition(index);
  }

private:
  /// Of a thread in the grid, or of its threadgroup's first one.
  bool isPosition(Value index) const {
    if (auto add = index.getDefiningOp<arith::AddIOp>()) {
      auto thread = llvm::dyn_cast<mlir::BlockArgument>(add.getRhs());
      if (!thread || !llvm::isa<ir::ThreadsOp>(thread.getOwner()->getParentOp()) || thread.getArgNumber() > 2)
        return false;
      const std::optional<unsigned> axis = axisOfFirst(add.getLhs());
      return axis == thread.getArgNumber();
    }
    return axisOfFirst(index).has_value();
  }

  std::optional<unsigned> axisOfFirst(Value index) const {
    auto times = index.getDefiningOp<arith::MulIOp>();
    auto id = (times ? times.getLhs() : index).getDefiningOp<ir::BlockIdOp>();
    if (!id || !block_)
      return std::nullopt;
    const auto axis = static_cast<unsigned>(id.getAxis());
    llvm::APInt size(64, 1);
    if (times && !mlir::matchPattern(times.getRhs(), mlir::m_ConstantInt(&size)))
      return std::nullopt;
    return size == static_cast<uint64_t>((*block_)[axis]) ? std::optional(axis) : std::nullopt;
  }

  const std::optional<std::array<int64_t, 3>>& block_;
};

/// The index of which `number` is the lower 32 bits.
Value indexBehind(Value number) {
  auto narrow = number.getDefiningOp<arith::TruncIOp>();
  auto cast = narrow ? narrow.getIn().getDefiningOp<arith::IndexCastUIOp>() : arith::IndexCastUIOp();
  return cast && cast.getIn().getType().isIndex() && number.getType().isInteger(32) ? cast.getIn() : Value();
}

void widen(mlir::Operation* op, const Sizes& sizes) {
  Value index = indexBehind(op->getOperand(0));
  if (!index || !sizes.fit(index, llvm::isa<arith::ExtUIOp>(op) ? 32 : 31))
    return;
  mlir::OpBuilder b(op);
  Value wide = b.create<arith::IndexCastUIOp>(op->getLoc(), b.getI64Type(), index);
  for (mlir::Operation* user : llvm::make_early_inc_range(op->getResult(0).getUsers()))
    if (llvm::isa<arith::IndexCastOp, arith::IndexCastUIOp>(user)) {
      user->getResult(0).replaceAllUsesWith(index);
      user->erase();
    }
  op->getResult(0).replaceAllUsesWith(wide);
  op->erase();
}

}  // namespace

void countLoops(mlir::ModuleOp module, const std::optional<std::array<int64_t, 3>>& block) {
  SmallVector<scf::WhileOp> loops;
  module.walk([&](scf::WhileOp loop) { loops.push_back(loop); });  // inner ones first
  for (scf::WhileOp loop : loops)
    LoopCounter(loop).run();
  const Sizes sizes(block);
  SmallVector<mlir::Operation*> extensions;
  module.walk([&](mlir::Operation* op) {
    if (llvm::isa<arith::ExtUIOp, arith::ExtSIOp>(op) && op->getResult(0).getType().isInteger(64))
      extensions.push_back(op);
  });
  for (mlir::Operation* op : extensions)
    widen(op, sizes);
  module.walk([&](scf::ForOp loop) { loop->removeAttr(kFits); });
}

}  // namespace vortex::msl::lift
