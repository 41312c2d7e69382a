// Integers of a thread are looked at as a number that all threads of the block share plus a small range: an index of nine points is
// 8 · block + [0, 7] + [0, 2] - 1. Whether that is at least 1 for the whole block, or at most an extent less 1, is then one comparison of
// shared numbers. All such comparisons together decide which version a block takes; what they were about is gone from the one inside.
#include "target/gpu/interior.h"

#include "ir/size_attr.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/TypeSwitch.h>
#include <mlir/Dialect/Arith/IR/Arith.h>
#include <mlir/Dialect/SCF/IR/SCF.h>
#include <mlir/IR/IRMapping.h>
#include <mlir/IR/Matchers.h>
#include <mlir/Interfaces/SideEffectInterfaces.h>

namespace vortex::target::gpu {

namespace arith = mlir::arith;
namespace scf = mlir::scf;
namespace vxt = ir::vxt;
using mlir::Value;

namespace {

/// Shared numbers up to here, and ranges so far below it that sums do not wrap.
constexpr int64_t kMostBase = int64_t(1) << 60, kMostRange = int64_t(1) << 30;
/// Longer kernels are not written twice.
constexpr size_t kMostTwice = 1000;

/// `base` (null: 0), the same in all threads of the block, plus something from `low` to `high`.
struct BlockRange {
  Value base;
  int64_t low = 0, high = 0;
};

std::optional<int64_t> knownInteger(Value value) {
  llvm::APInt known;
  if (mlir::matchPattern(value, mlir::m_ConstantInt(&known)) && known.getBitWidth() <= 64)
    return known.getSExtValue();
  return std::nullopt;
}

class Interior {
public:
  explicit Interior(vxt::KernelOp kernel) : kernel_(kernel), b_(kernel.getContext()) {}

  void run() {
    if (!isPlain())
      return;
    bool hasLimits = false;
    kernel_.walk([&](mlir::Operation* op) { hasLimits |= fold(op); });
    if (hasLimits)
      split();
  }

private:
  bool isPlain() {
    size_t operations = 0;
    return !kernel_
                .walk([&](mlir::Operation* op) {
                  bool isOrder = mlir::isa<vxt::KernelOp, vxt::ReturnOp, vxt::LoadOp, vxt::StoreOp, scf::ForOp,
                                           scf::IfOp, scf::YieldOp>(op);
                  bool isFine = isOrder || mlir::isPure(op) || op->getDialect()->getNamespace() == "arith";
                  return isFine && ++operations < kMostTwice ? mlir::WalkResult::advance()
                                                             : mlir::WalkResult::interrupt();
                })
                .wasInterrupted();
  }

  /// The same in all threads of the block, and computed without memory.
  bool isShared(Value value) {
    auto [place, isNew] = shared_.try_emplace(value, false);
    if (!isNew)
      return place->second;
    mlir::Operation* op = value.getDefiningOp();
    bool is = !op ? value.getParentBlock() == &kernel_.getBody().front()
                  : mlir::isa<vxt::BlockIdOp, vxt::GridDimOp>(op) ||
                        (op->getNumRegions() == 0 && mlir::isPure(op) && !mlir::isa<vxt::ThreadIdOp>(op) &&
                         llvm::all_of(op->getOperands(), [&](Value operand) { return isShared(operand); }));
    return shared_[value] = is;
  }

  std::optional<BlockRange> rangeOf(Value value) {
    auto [place, isNew] = ranges_.try_emplace(value, std::nullopt);
    if (!isNew)
      return place->second;
    std::optional<BlockRange> range = build(value);
    if (range && !fits(*range, value.getType()))
      range.reset();
    return ranges_[value] = range;
  }

  /// Nothing wrapped on the way to it: a signed number of the type.
  static bool fits(const BlockRange& range, mlir::Type type) {
    const unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
    const int64_t most = std::min(kMostRange, llvm::maxIntN(bits));
    return range.low >= -most && range.high <= most;
  }

  std::optional<BlockRange> build(Value value) {
    if (!value.getType().isIntOrIndex() || value.getType().isInteger(1))
      return std::nullopt;
    if (auto known = knownInteger(value))
      return BlockRange{{}, *known, *known};
    if (isShared(value))
      return value.getType().isIndex() ? std::optional(ofShared(value)) : std::nullopt;
    if (auto argument = mlir::dyn_cast<mlir::BlockArgument>(value))
      return ofLoop(argument);
    mlir::Operation* op = value.getDefiningOp();
    return llvm::TypeSwitch<mlir::Operation*, std::optional<BlockRange>>(op)
        .Case([&](vxt::ThreadIdOp) { return ofThread(); })
        .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::TruncIOp, arith::ExtUIOp, arith::ExtSIOp>(
            [&](auto cast) { return withoutBase(rangeOf(cast.getIn())); })
        .Case([&](arith::AddIOp add) { return sum(rangeOf(add.getLhs()), rangeOf(add.getRhs()), 1); })
        .Case([&](arith::SubIOp sub) { return sum(rangeOf(sub.getLhs()), withoutBase(rangeOf(sub.getRhs())), -1); })
        .Case([&](arith::MulIOp mul) { return product(rangeOf(mul.getLhs()), rangeOf(mul.getRhs())); })
        .Case([&](arith::DivUIOp div) { return quotient(rangeOf(div.getLhs()), knownInteger(div.getRhs())); })
        .Case([&](arith::RemUIOp rem) { return remainder(rangeOf(rem.getLhs()), knownInteger(rem.getRhs())); })
        .Default([&](mlir::Operation* other) {
          auto kept = kept_.find(other);
          return kept == kept_.end() ? std::optional<BlockRange>() : rangeOf(kept->second);
        });
  }

  /// Constants are taken off, so that what is asked of a number and of its neighbours is asked once.
  BlockRange ofShared(Value value) {
    mlir::Operation* op = value.getDefiningOp();
    if (auto kept = kept_.find(op); op && kept != kept_.end())
      if (auto range = rangeOf(kept->second))
        return *range;
    if (mlir::isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
      if (auto known = knownInteger(op->getOperand(1)); known && *known > -kMostRange && *known < kMostRange)
        if (auto range = rangeOf(op->getOperand(0)); range && range->base) {
          const int64_t more = mlir::isa<arith::AddIOp>(op) ? *known : -*known;
          return {range->base, range->low + more, range->high + more};
        }
    return {value};
  }

  /// Differs from block to block.
  bool isOfBlock(Value value) {
    mlir::Operation* op = value.getDefiningOp();
    return op && isShared(value) &&
           (mlir::isa<vxt::BlockIdOp>(op) ||
            llvm::any_of(op->getOperands(), [&](Value operand) { return isOfBlock(operand); }));
  }

  /// Small and not negative: the same number in every type.
  static std::optional<BlockRange> withoutBase(std::optional<BlockRange> range) {
    return range && !range->base && range->low >= 0 ? range : std::nullopt;
  }

  std::optional<BlockRange> ofThread() {
    auto threads = ir::constantSize(kernel_.getThreads());
    return threads ? std::optional(BlockRange{{}, 0, *threads - 1}) : std::nullopt;
  }

  static std::optional<BlockRange> ofLoop(mlir::BlockArgument argument) {
    auto loop = mlir::dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument != loop.getInductionVar())
      return std::nullopt;
    auto low = knownInteger(loop.getLowerBound()), end = knownInteger(loop.getUpperBound());
    if (!low || !end || *low < 0 || *end <= *low)
      return std::nullopt;
    return BlockRange{{}, *low, *end - 1};
  }

  static std::optional<BlockRange> sum(std::optional<BlockRange> a, std::optional<BlockRange> b, int64_t sign) {
    if (!a || !b || (a->base && b->base))
      return std::nullopt;
    int64_t low = sign > 0 ? b->low : -b->high, high = sign > 0 ? b->high : -b->low;
    return BlockRange{a->base ? a->base : b->base, a->low + low, a->high + high};
  }

  static std::optional<BlockRange> product(std::optional<BlockRange> a, std::optional<BlockRange> b) {
    a = withoutBase(a), b = withoutBase(b);
    return a && b ? std::optional(BlockRange{{}, a->low * b->low, a->high * b->high}) : std::nullopt;
  }

  static std::optional<BlockRange> quotient(std::optional<BlockRange> a, std::optional<int64_t> by) {
    a = withoutBase(a);
    return a && by && *by > 0 ? std::optional(BlockRange{{}, a->low / *by, a->high / *by}) : std::nullopt;
  }

  static std::optional<BlockRange> remainder(std::optional<BlockRange> a, std::optional<int64_t> by) {
    a = withoutBase(a);
    return a && by && *by > 0 ? std::optional(BlockRange{{}, 0, std::min(a->high, *by - 1)}) : std::nullopt;
  }

  /// Of a thread or of the block, not of the launch.
  std::optional<BlockRange> own(Value value) {
    std::optional<BlockRange> range = value.getType().isIndex() ? rangeOf(value) : std::nullopt;
    return range && (!isShared(value) || isOfBlock(value)) ? range : std::nullopt;
  }

  /// Whether `op` is a limit of a thread that is gone inside; notes what that takes. Comparisons and limits of the block are gone, too, but no
  /// reason.
  bool fold(mlir::Operation* op) {
    if (mlir::isa<arith::MaxUIOp, arith::MaxSIOp, arith::MinUIOp, arith::MinSIOp>(op)) {
      for (unsigned side : {0U, 1U})
        if (limits(op, op->getOperand(side), op->getOperand(1 - side)))
          return !isShared(op->getResult(0));
      return false;
    }
    if (auto compare = mlir::dyn_cast<arith::CmpIOp>(op))
      compares(compare);
    return false;
  }

  bool limits(mlir::Operation* op, Value value, Value limit) {
    std::optional<BlockRange> range = own(value);
    if (!range || !isShared(limit) || (isShared(value) && isOfBlock(limit)))
      return false;
    bool isMaximum = mlir::isa<arith::MaxUIOp, arith::MaxSIOp>(op);
    auto known = knownInteger(limit);
    if (isMaximum ? !known || *known < 0 || !atLeast(*range, *known) : !atLeast(*range, 0) || !atMost(*range, limit, 0))
      return false;
    auto before = kept_.find(value.getDefiningOp());
    const Value kept = before == kept_.end() ? value : before->second;
    kept_[op] = kept;
    return true;
  }

  void compares(arith::CmpIOp op) {
    using P = arith::CmpIPredicate;
    bool less = op.getPredicate() == P::ult || op.getPredicate() == P::slt,
         more = op.getPredicate() == P::ugt || op.getPredicate() == P::sgt;
    Value value = more ? op.getRhs() : op.getLhs(), limit = more ? op.getLhs() : op.getRhs();
    std::optional<BlockRange> range = less || more ? own(value) : std::nullopt;
    // A branch that the whole block takes costs nothing: those of other blocks would lose their straight version.
    if (range && isShared(value) && (isOfBlock(limit) || !isMask(op)))
      return;
    if (range && isShared(limit) && atLeast(*range, 0) && atMost(*range, limit, 1))
      holds_.insert(op);
  }

  /// Nothing but a condition of accesses.
  static bool isMask(Value truth) {
    return llvm::all_of(truth.getUsers(), [](mlir::Operation* user) {
      return mlir::isa<vxt::LoadOp, vxt::StoreOp>(user) ||
             (mlir::isa<arith::AndIOp>(user) && isMask(user->getResult(0)));
    });
  }

  /// Notes what it takes that the range is not below `limit`; false: it is.
  bool atLeast(const BlockRange& range, int64_t limit) {
    if (!range.base)
      return range.low >= limit;
    auto [place, isNew] = lowest_.try_emplace(range.base, 0);
    place->second = std::max(place->second, limit - range.low);
    return true;
  }

  /// The same for range + more ≤ limit.
  bool atMost(const BlockRange& range, Value limit, int64_t more) {
    // At most one less than an extent is below the extent: asked once.
    for (auto step = lessByConstant(limit); step; step = lessByConstant(limit))
      limit = step->first, more += step->second;
    if (auto known = knownInteger(limit); known && !range.base)
      return range.high + more <= *known;
    auto [place, isNew] = highest_.try_emplace({range.base, limit}, range.high + more);
    place->second = std::max(place->second, range.high + more);
    return true;
  }

  /// `limit` as another number less one that is not negative. Where the other number is not below what is asked of it, the difference does not wrap.
  static std::optional<std::pair<Value, int64_t>> lessByConstant(Value limit) {
    mlir::Operation* op = limit.getDefiningOp();
    if (!mlir::isa_and_nonnull<arith::SubIOp, arith::AddIOp>(op) || !limit.getType().isIndex())
      return std::nullopt;
    auto known = knownInteger(op->getOperand(1));
    if (!known || *known < -kMostRange || *known > kMostRange)
      return std::nullopt;
    const int64_t less = mlir::isa<arith::SubIOp>(op) ? *known : -*known;
    return less >= 0 ? std::optional(std::pair(op->getOperand(0), less)) : std::nullopt;
  }

  /// A shared value where the builder stands.
  Value here(Value value) {
    if (!value.getDefiningOp())
      return value;
    if (Value known = here_.lookupOrNull(value))
      return known;
    for (Value operand : value.getDefiningOp()->getOperands())
      here_.map(operand, here(operand));
    return b_.clone(*value.getDefiningOp(), here_)->getResult(0);
  }

  Value condition() {
    mlir::Location loc = kernel_.getLoc();
    Value all;
    auto require = [&](arith::CmpIPredicate predicate, Value a, Value b) {
      Value holds = b_.create<arith::CmpIOp>(loc, predicate, a, b);
      all = all ? Value(b_.create<arith::AndIOp>(loc, all, holds)) : holds;
    };
    auto constant = [&](int64_t value) -> Value { return b_.create<arith::ConstantIndexOp>(loc, value); };
    for (auto [base, least] : lowest_) {
      require(arith::CmpIPredicate::ult, here(base), constant(kMostBase));
      require(arith::CmpIPredicate::sge, here(base), constant(least));
    }
    for (auto& [pair, high] : highest_) {
      auto [base, limit] = pair;
      Value most = constant(high);
      if (base)
        most = b_.create<arith::AddIOp>(loc, here(base), most);
      require(arith::CmpIPredicate::sle, most, here(limit));
    }
    return all;
  }

  void split() {
    mlir::Block& body = kernel_.getBody().front();
    mlir::Operation* end = body.getTerminator();
    llvm::SmallVector<mlir::Operation*> operations;
    for (mlir::Operation& op : body.without_terminator())
      operations.push_back(&op);
    b_.setInsertionPointToStart(&body);
    Value isInside = condition();
    if (!isInside)
      return;
    b_.setInsertionPoint(end);
    auto branch = b_.create<scf::IfOp>(kernel_.getLoc(), isInside, /*withElseRegion=*/true);
    b_.setInsertionPointToStart(&branch.getThenRegion().front());
    mlir::IRMapping inside;
    for (mlir::Operation* op : operations)
      b_.clone(*op, inside);
    for (mlir::Operation* op : operations)
      op->moveBefore(branch.getElseRegion().front().getTerminator());
    for (auto [op, value] : kept_)
      replace(inside.lookup(op->getResult(0)), inside.lookupOrDefault(value));
    for (mlir::Operation* op : holds_)
      holdAll(inside.lookup(op->getResult(0)));
  }

  static void replace(Value old, Value value) {
    old.replaceAllUsesWith(value);
    old.getDefiningOp()->erase();
  }

  /// `truth` is true: masks that are nothing else are gone.
  static void holdAll(Value truth) {
    for (mlir::Operation* user : llvm::make_early_inc_range(truth.getUsers())) {
      if (auto both = mlir::dyn_cast<arith::AndIOp>(user)) {
        Value other = both.getLhs() == truth ? both.getRhs() : both.getLhs();
        if (other == truth)
          continue;
        both.replaceAllUsesWith(other);
        both.erase();
      } else if (auto load = mlir::dyn_cast<vxt::LoadOp>(user)) {
        load.getMaskMutable().clear();
      } else if (auto store = mlir::dyn_cast<vxt::StoreOp>(user); store && store.getMask() == truth) {
        store.getMaskMutable().clear();
      }
    }
    mlir::OpBuilder b(truth.getDefiningOp());
    replace(truth, b.create<arith::ConstantIntOp>(truth.getLoc(), 1, 1));
  }

  vxt::KernelOp kernel_;
  mlir::OpBuilder b_;
  llvm::DenseMap<Value, bool> shared_;
  llvm::DenseMap<Value, std::optional<BlockRange>> ranges_;
  llvm::MapVector<mlir::Operation*, Value> kept_;  ///< limits that are gone inside, and what they are then
  llvm::SetVector<mlir::Operation*> holds_;        ///< comparisons that are true inside
  llvm::MapVector<Value, int64_t> lowest_;         ///< what shared numbers are at least inside
  llvm::MapVector<std::pair<Value, Value>, int64_t>
      highest_;  ///< inside, shared number (null: 0) + this ≤ shared number
  mlir::IRMapping here_;
};

}  // namespace

void straightenInterior(vxt::KernelOp kernel) { Interior(kernel).run(); }

}  // namespace vortex::target::gpu
