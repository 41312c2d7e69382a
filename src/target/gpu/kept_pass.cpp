#include "target/gpu/kept_pass.h"

#include "ir/index_cast.h"
#include "target/gpu/plain_iterations.h"
#include "target/gpu/unrolling.h"

#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/Utils/StaticValueUtils.h>
#include <mlir/IR/IRMapping.h>

#include <array>
#include <limits>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
using mlir::Value;

namespace {

using Values = llvm::SmallVector<Value>;

/// A branch with two sides without ends, which it has at once where it has no results.
scf::IfOp openBranch(mlir::OpBuilder& b, mlir::Location loc, llvm::ArrayRef<mlir::Type> types, Value condition) {
  auto branch = b.create<scf::IfOp>(loc, types, condition, /*withElseRegion=*/true);
  for (mlir::Region& side : branch->getRegions())
    side.front().clear();
  return branch;
}

/// One pass with its rows in registers.
class Writer {
public:
  Writer(RowPass& pass, int64_t iterations)
      : pass_(pass), loop_(pass.loop), iterations_(iterations), step_(*mlir::getConstantIntValue(loop_.getStep())),
        plain_(loop_), b_(loop_), loc_(loop_.getLoc()), mappings_(static_cast<size_t>(iterations)) {}

  void take(const Kept& kept, llvm::ArrayRef<Value> values) {
    for (auto [mapping, value] : llvm::zip(mappings_, values))
      mapping.map(kept.again->getResult(0), value);
  }
  /// `a` may be null.
  Value both(Value a, Value b) { return a ? b_.create<arith::AndIOp>(loc_, a, b).getResult() : b; }

  /// In front of the loop; `given`: rows are kept in the passes that this one takes values from.
  Value fits(Value given) {
    Value fits = given;
    const auto isAtMost = [&](Value x, Value y) {
      return b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::sle, x, y);
    };
    const auto require = [&](Value holds) { fits = both(fits, holds); };
    /// From the loop's first element on; it fits 32 bits where the row is kept, so that no masks are compared in 64.
    const auto fromFirst = [&](Value end) {
      Value count = b_.create<arith::SubIOp>(loc_, end, loop_.getLowerBound());
      require(isAtMost(index(std::numeric_limits<int32_t>::min()), count));
      return count;
    };
    Value left = fromFirst(loop_.getUpperBound());
    require(isAtMost(left, index(iterations_ * step_)));
    left_ = least_ = ir::fromIndex(b_, loc_, b_.getI32Type(), left);
    if (plain_.holds())
      require(plain_.holds());
    llvm::DenseMap<mlir::Operation*, Value> wide;
    for (mlir::Operation& op : loop_.getBody()->without_terminator())
      for (const PlainIterations::Limit& limit : plain_.limitsOf(&op)) {
        if (mlir::Operation* mask = limitedMask(op)) {  // which then says that the access is inside
          require(isAtMost(wide.lookup(mask), limit.below));
          continue;
        }
        Value below;
        if (mlir::isa<arith::CmpIOp>(op) && withoutCasts(limit.end) == withoutCasts(loop_.getUpperBound())) {
          below = ir::fromIndex(b_, loc_, b_.getI32Type(), fromFirst(limit.below));
          require(isAtMost(limit.below, loop_.getUpperBound()));
          counted_.insert(&op);
        } else {
          below = narrow(b_.create<arith::SubIOp>(loc_, limit.below, loop_.getLowerBound()));
        }
        wide[&op] = limit.below;
        limits_[&op].push_back(below);
        // No minimum: that would be taken for an index that is held inside an extent (interior.h).
        Value isLess = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, below, least_);
        least_ = b_.create<arith::SelectOp>(loc_, isLess, below, least_);
      }
    return fits;
  }

  /// The results of the loop, then what later passes need, by value and iteration.
  Values write(mlir::OpBuilder& b) {
    b_ = b;
    findEarly();
    for (int64_t first = 0; first < iterations_ && !early_.empty(); first += kRowTogether)
      writeEarly(first);
    Values carried(loop_.getInitArgs());
    llvm::SmallVector<Values> given(pass_.given.size());
    for (int64_t first = 0; first < iterations_; first += kRowTogether)
      writeGroup(first, carried, given);
    b = b_;
    Values all = carried;
    for (const Values& values : given)
      all.append(values);
    return all;
  }

private:
  Value index(int64_t value) { return b_.create<arith::ConstantIndexOp>(loc_, value); }
  Value i32(int64_t value) { return b_.create<arith::ConstantIntOp>(loc_, value, 32); }

  /// Held between 0 and the last iteration's end, which all comparisons are with.
  Value narrow(Value limit) {
    Value most = index(iterations_ * step_), none = index(0);
    const auto choose = [&](arith::CmpIPredicate predicate, Value bound) {
      Value isBeyond = b_.create<arith::CmpIOp>(loc_, predicate, limit, bound);
      limit = b_.create<arith::SelectOp>(loc_, isBeyond, bound, limit);
    };
    choose(arith::CmpIPredicate::sgt, most);
    choose(arith::CmpIPredicate::slt, none);
    return ir::fromIndex(b_, loc_, b_.getI32Type(), limit);
  }

  /// Of casts that keep the number.
  static Value withoutCasts(Value value) {
    const auto bits = [](Value of) { return of.getType().isIndex() ? 64U : of.getType().getIntOrFloatBitWidth(); };
    while (mlir::Operation* op = value.getDefiningOp()) {
      if (!mlir::isa<arith::IndexCastOp, arith::ExtSIOp>(op) || bits(op->getOperand(0)) > bits(value))
        break;
      value = op->getOperand(0);
    }
    return value;
  }

  Value isBelow(int64_t iteration, Value limit) {
    return b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, i32(iteration * step_), limit);
  }

  /// A comparison with the counter that the mask of a load or store is, or is part of; null: there is none.
  mlir::Operation* limitedMask(mlir::Operation& access) const {
    llvm::SmallVector<Value> open;
    if (auto load = mlir::dyn_cast<ir::LoadOp>(access))
      open.push_back(load.getMask());
    else if (auto store = mlir::dyn_cast<ir::StoreOp>(access))
      open.push_back(store.getMask());
    while (!open.empty()) {
      const Value condition = open.pop_back_val();
      mlir::Operation* op = condition ? condition.getDefiningOp() : nullptr;
      if (auto both = mlir::dyn_cast_if_present<arith::AndIOp>(op))
        open.append({both.getLhs(), both.getRhs()});
      else if (op && mlir::isa<arith::CmpIOp>(op) && limits_.contains(op))
        return op;
    }
    return nullptr;
  }

  /// True only in iterations that the loop makes.
  bool isCounted(Value condition) {
    mlir::Operation* op = condition ? condition.getDefiningOp() : nullptr;
    if (auto both = mlir::dyn_cast_if_present<arith::AndIOp>(op))
      return isCounted(both.getLhs()) || isCounted(both.getRhs());
    return op && counted_.contains(op);
  }

  /// `isPlain`: all conditions hold that limits are known of.
  void clone(mlir::Operation& op, int64_t iteration, mlir::IRMapping& mapping, bool isPlain) {
    const auto found = limits_.find(&op);
    if (mlir::isa<arith::CmpIOp>(op) && found != limits_.end()) {
      Value holds =
          isPlain ? b_.create<arith::ConstantIntOp>(loc_, 1, 1).getResult() : isBelow(iteration, found->second.front());
      mapping.map(op.getResult(0), holds);
      return;
    }
    mlir::Operation* made = b_.clone(op, mapping);
    if (auto load = mlir::dyn_cast<ir::LoadOp>(made))
      restrict(load, op, iteration, isPlain);
    else if (auto store = mlir::dyn_cast<ir::StoreOp>(made))
      restrict(store, op, iteration, isPlain);
  }

  /// Masks say where the access is inside, and that the loop makes the iteration.
  template <typename Access> void restrict(Access access, mlir::Operation& original, int64_t iteration, bool isPlain) {
    if (plain_.isInside(original))
      access.setGuarded(false);
    mlir::OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPoint(access);
    const auto require = [&](Value holds) { access.getMaskMutable().assign(both(access.getMask(), holds)); };
    if (isPlain) {
      if (limitedMask(original) && mlir::isa<arith::CmpIOp>(mlir::cast<Access>(original).getMask().getDefiningOp()))
        access.getMaskMutable().clear();
      return;
    }
    if (plain_.isInside(original))
      for (Value limit : limits_.lookup(&original))
        require(isBelow(iteration, limit));
    if (!isCounted(mlir::cast<Access>(original).getMask()))
      require(isBelow(iteration, left_));
  }

  mlir::IRMapping& mappingOf(int64_t iteration) { return mappings_[static_cast<size_t>(iteration)]; }

  void mapCounter(int64_t iteration, mlir::IRMapping& mapping) {
    mapping.map(loop_.getInductionVar(),
                b_.create<arith::AddIOp>(loc_, loop_.getLowerBound(), index(iteration * step_)));
  }

  /// All conditions with limits hold in the iterations from `first` on that are done together.
  Value isPlainFrom(int64_t first) { return isBelow(first + kRowTogether - 1, least_); }

  /// Loads of what is given, and what those are computed from.
  void findEarly() {
    for (mlir::Operation* op : pass_.given)
      if (mlir::isa<ir::LoadOp>(op)) {
        loads_.push_back(op);
        addEarly(op);
      }
  }

  void addEarly(mlir::Operation* op) {
    if (op->getBlock() != loop_.getBody() || !pass_.needed.contains(op) || !early_.insert(op).second)
      return;
    for (Value operand : op->getOperands())
      if (operand.getDefiningOp())
        addEarly(operand.getDefiningOp());
  }

  /// No load of a row waits for a use of another one: these branches only load.
  void writeEarly(int64_t first) {
    llvm::SmallVector<mlir::Type> types;
    for (mlir::Operation* load : loads_)
      types.append(kRowTogether, load->getResult(0).getType());
    auto branch = openBranch(b_, loc_, types, isPlainFrom(first));
    for (bool isPlain : {true, false}) {
      b_.setInsertionPointToStart(isPlain ? branch.thenBlock() : branch.elseBlock());
      std::array<mlir::IRMapping, kRowTogether> mappings;
      for (int64_t j = 0; j < kRowTogether; ++j) {
        mappings[static_cast<size_t>(j)] = mappingOf(first + j);
        mapCounter(first + j, mappings[static_cast<size_t>(j)]);
      }
      for (mlir::Operation& op : loop_.getBody()->without_terminator())
        if (early_.contains(&op))
          for (int64_t j = 0; j < kRowTogether; ++j)
            clone(op, first + j, mappings[static_cast<size_t>(j)], isPlain);
      Values results;
      for (mlir::Operation* load : loads_)
        for (mlir::IRMapping& mapping : mappings)
          results.push_back(mapping.lookup(load->getResult(0)));
      b_.create<scf::YieldOp>(loc_, results);
    }
    b_.setInsertionPointAfter(branch);
    mlir::ResultRange results = branch.getResults();
    for (mlir::Operation* load : loads_)
      for (int64_t j = 0; j < kRowTogether; ++j, results = results.drop_front())
        mappingOf(first + j).map(load->getResult(0), results.front());
  }

  void writeGroup(int64_t first, Values& carried, llvm::SmallVector<Values>& given) {
    llvm::SmallVector<mlir::Type> types(loop_.getResultTypes());
    for (mlir::Operation* op : pass_.given)
      if (!mlir::isa<ir::LoadOp>(op))
        types.append(kRowTogether, op->getResult(0).getType());
    auto plain = openBranch(b_, loc_, types, isPlainFrom(first));
    b_.setInsertionPointToStart(plain.thenBlock());
    b_.create<scf::YieldOp>(loc_, writeIterations(first, carried, true));
    arrangeTogether(*plain.thenBlock());
    b_.setInsertionPointToStart(plain.elseBlock());
    auto some = openBranch(b_, loc_, types, isBelow(first, left_));
    b_.create<scf::YieldOp>(loc_, some.getResults());
    b_.setInsertionPointToStart(some.thenBlock());
    b_.create<scf::YieldOp>(loc_, writeIterations(first, carried, false));
    arrangeTogether(*some.thenBlock());
    b_.setInsertionPointToStart(some.elseBlock());
    Values none = carried;
    for (mlir::Type type : llvm::ArrayRef(types).drop_front(carried.size()))
      none.push_back(b_.create<arith::ConstantOp>(loc_, b_.getZeroAttr(type)));
    b_.create<scf::YieldOp>(loc_, none);
    b_.setInsertionPointAfter(plain);
    mlir::ResultRange results = plain.getResults();
    for (Value& state : carried) {
      state = results.front();
      results = results.drop_front();
    }
    for (auto [op, values] : llvm::zip(pass_.given, given))
      for (int64_t j = 0; j < kRowTogether; ++j) {
        if (mlir::isa<ir::LoadOp>(op)) {
          values.push_back(mappingOf(first + j).lookup(op->getResult(0)));
          continue;
        }
        values.push_back(results.front());
        results = results.drop_front();
      }
  }

  /// What is carried on, then what is given and not loaded.
  Values writeIterations(int64_t first, Values carried, bool isPlain) {
    std::array<mlir::IRMapping, kRowTogether> mappings;
    for (int64_t j = 0; j < kRowTogether; ++j) {
      mlir::IRMapping& mapping = mappings[static_cast<size_t>(j)] = mappingOf(first + j);
      mapCounter(first + j, mapping);
      mapping.map(loop_.getRegionIterArgs(), carried);
      for (mlir::Operation& op : loop_.getBody()->without_terminator())
        if (pass_.needed.contains(&op) && !llvm::is_contained(loads_, &op))
          clone(op, first + j, mapping, isPlain);
      for (auto [state, argument, next] : llvm::zip(carried, loop_.getRegionIterArgs(), loop_.getYieldedValues())) {
        Value value = mapping.lookupOrDefault(next);
        auto choice = next.getDefiningOp<arith::SelectOp>();
        const bool keeps = choice && choice.getFalseValue() == argument && isCounted(choice.getCondition());
        if (!isPlain && j > 0 && !keeps)
          value = b_.create<arith::SelectOp>(loc_, isBelow(first + j, left_), value, state);
        state = value;
      }
    }
    for (mlir::Operation* op : pass_.given)
      if (!mlir::isa<ir::LoadOp>(op))
        for (mlir::IRMapping& mapping : mappings)
          carried.push_back(mapping.lookup(op->getResult(0)));
    return carried;
  }

  RowPass& pass_;
  scf::ForOp loop_;
  int64_t iterations_, step_;
  PlainIterations plain_;
  mlir::OpBuilder b_;
  mlir::Location loc_;
  Value left_, least_;  ///< i32, from the loop's first element on: its end, and the least of all limits
  llvm::DenseMap<mlir::Operation*, llvm::SmallVector<Value, 1>> limits_;  ///< i32
  llvm::DenseSet<mlir::Operation*> counted_;   ///< comparisons that hold in no iteration which the loop does not make
  llvm::SmallVector<mlir::Operation*> loads_;  ///< of rows that are given
  llvm::DenseSet<mlir::Operation*> early_;     ///< they, and what they are computed from
  std::vector<mlir::IRMapping> mappings_;      ///< by iteration
};

}  // namespace

void writeKept(RowPass& pass, int64_t iterations, llvm::ArrayRef<Value> given,
               llvm::ArrayRef<llvm::ArrayRef<Value>> rows) {
  Writer writer(pass, iterations);
  for (auto [kept, values] : llvm::zip(pass.kept, rows))
    writer.take(kept, values);
  Value isGiven;
  for (Value each : given)
    isGiven = writer.both(isGiven, each);
  Value fits = writer.fits(isGiven);
  scf::ForOp loop = pass.loop;
  llvm::SmallVector<mlir::Type> types(loop.getResultTypes());
  for (mlir::Operation* op : pass.given)
    types.append(static_cast<size_t>(iterations), op->getResult(0).getType());
  mlir::OpBuilder b(loop);
  auto choice = openBranch(b, loop.getLoc(), types, fits);
  loop->replaceAllUsesWith(choice.getResults().take_front(loop.getNumResults()));
  b.setInsertionPointToStart(choice.thenBlock());
  b.create<scf::YieldOp>(loop.getLoc(), writer.write(b));
  b.setInsertionPointToStart(choice.elseBlock());
  loop->setAttr(kLongRows, b.getUnitAttr());
  loop->moveBefore(choice.elseBlock(), choice.elseBlock()->begin());
  b.setInsertionPointAfter(loop);
  Values otherwise(loop.getResults());
  for (mlir::Type type : llvm::ArrayRef(types).drop_front(loop.getNumResults()))
    otherwise.push_back(b.create<arith::ConstantOp>(loop.getLoc(), b.getZeroAttr(type)));
  b.create<scf::YieldOp>(loop.getLoc(), otherwise);
  pass.values = {fits};
  llvm::append_range(pass.values, choice.getResults().drop_front(loop.getNumResults()));
}

}  // namespace vortex::target::gpu
