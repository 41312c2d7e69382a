// Elementwise code costs nothing to compute again in every phase that needs it, and in every place where it is read turned or shifted; a program
// that reads each statement's result twice so doubles that work with every line. Counted is what one element takes: operations that
// read the same element of each other once, whoever uses them, and all of it anew behind whatever reads another element (transposes, slices,
// broadcasts, reshapes). Where that is too much, the dearest value that is read otherwise than it lies is stored, with all that later
// operations need of earlier ones.
#include "passes/plan/stored_values.h"

#include "passes/plan/axes.h"
#include "passes/plan/clusters.h"
#include "passes/plan/size_expression.h"

#include "ir/tile_sizes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace vortex::passes {

using namespace mlir;

namespace {

/// Of one element, and of what all phases of a piece compute of each element.
constexpr int64_t kMostComputed = 64, kMostInPhases = 512;
/// As many times as the program writes it down.
constexpr int64_t kMostTimes = 4;
constexpr int64_t kCapped = int64_t(1) << 40;

class StoredValues {
public:
  StoredValues(Block& block, llvm::function_ref<bool(Operation*)> isControl) : isControl_(isControl) {
    for (Operation& op : block.without_terminator())
      ops_.push_back(&op);
    for (auto [number, op] : llvm::enumerate(ops_))
      numbers_[op] = number;
  }

  llvm::DenseSet<Operation*> run() {
    for (size_t at = 0; at < ops_.size(); ++at) {
      if (isControl_(ops_[at])) {
        begin(at + 1);
        continue;
      }
      const int64_t work = workOf(ops_[at]);
      total_[ops_[at]] = work;
      if (!isLazy(ops_[at]))
        inPhases_ += work;
      std::optional<size_t> cut;
      if (isLazy(ops_[at]))
        cut = exceeds(work, kMostComputed, {ops_[at]}) ? dearest(at, true) : std::nullopt;
      else if (exceeds(inPhases_, kMostInPhases, ArrayRef(ops_).slice(first_, at + 1 - first_)))
        cut = dearest(at, false);
      if (!cut)
        continue;
      stored_.insert(ops_[*cut]);
      begin(*cut + 1);
      at = *cut;
    }
    return std::move(stored_);
  }

private:
  void begin(size_t at) {
    first_ = at;
    inPhases_ = 0;
    total_.clear();
  }

  /// Computed wherever it is needed.
  static bool isLazy(Operation* op) {
    return op->getNumResults() == 1 && op->getNumRegions() == 0 && isPure(op) && isTile(op->getResult(0)) &&
           !isa<ir::ReduceOp, ir::DotOp, ir::ScanOp>(op);
  }
  /// Its element is computed from the same element of its operands.
  static bool keepsPlaces(Operation* op) { return ir::isElementwise(op); }

  /// The operation that makes a value of this piece, which is computed again; null: it is at hand.
  Operation* lazySource(Value value) const {
    Operation* op = value.getDefiningOp();
    auto number = op ? numbers_.find(op) : numbers_.end();
    return number != numbers_.end() && number->second >= first_ && isLazy(op) ? op : nullptr;
  }

  /// Calls `visit` with what is computed for an element of `op`, once each; true: its operands are read at other places.
  void forEachAtElement(Operation* op, llvm::function_ref<void(Operation*)> visit) const {
    llvm::DenseSet<Operation*> seen{op};
    SmallVector<Operation*> pending{op};
    while (!pending.empty()) {
      Operation* each = pending.pop_back_val();
      visit(each);
      if (each != op && !keepsPlaces(each))
        continue;
      Clusters::forEachOperand(each, [&](Value value) {
        if (Operation* source = lazySource(value);
            source && (keepsPlaces(op) || each != op) && seen.insert(source).second)
          pending.push_back(source);
      });
    }
  }

  int64_t workOf(Operation* op) const {
    int64_t work = 0;
    forEachAtElement(op, [&](Operation* each) {
      ++work;
      if (keepsPlaces(each))
        return;
      llvm::SmallDenseSet<Operation*> sources;
      Clusters::forEachOperand(each, [&](Value value) {
        if (Operation* source = lazySource(value); source && sources.insert(source).second)
          work += total_.lookup(source);
      });
    });
    return std::min(work, kCapped);
  }

  /// More than the limit, and than so many times what is written down.
  bool exceeds(int64_t work, int64_t limit, ArrayRef<Operation*> roots) const {
    if (work <= limit)
      return false;
    llvm::DenseSet<Operation*> seen(roots.begin(), roots.end());
    SmallVector<Operation*> pending(roots.begin(), roots.end());
    while (!pending.empty())
      Clusters::forEachOperand(pending.pop_back_val(), [&](Value value) {
        if (Operation* source = lazySource(value); source && seen.insert(source).second)
          pending.push_back(source);
      });
    return work > kMostTimes * static_cast<int64_t>(seen.size());
  }

  /// What may be stored of all that the operation is computed from: read at other places, or needed by a later one, too.
  std::optional<size_t> dearest(size_t at, bool isReadElsewhere) const {
    std::optional<size_t> best;
    int64_t most = 1;
    llvm::DenseSet<Operation*> seen;
    SmallVector<Operation*> pending{ops_[at]};
    while (!pending.empty()) {
      Operation* each = pending.pop_back_val();
      Clusters::forEachOperand(each, [&](Value value) {
        Operation* source = lazySource(value);
        if (!source)
          return;
        const size_t number = numbers_.lookup(source);
        const bool isWanted = isReadElsewhere ? !keepsPlaces(each) : isNeededLater(value, at);
        if (isWanted && total_.lookup(source) > most && mayCut(number)) {
          most = total_.lookup(source);
          best = number;
        }
        if (seen.insert(source).second)
          pending.push_back(source);
      });
    }
    return best;
  }

  bool isNeededLater(Value value, size_t at) const {
    return llvm::any_of(value.getUsers(), [&](Operation* user) { return numberOf(user) > at; });
  }

  /// Of the block's operation that it stands in.
  size_t numberOf(Operation* op) const {
    Operation* own = ops_[0]->getBlock()->findAncestorOpInBlock(*op);
    auto number = numbers_.find(own);
    return number == numbers_.end() ? ops_.size() : number->second;
  }

  /// The extents of all tiles that are needed behind the operation are known before the launch.
  bool mayCut(size_t at) const {
    for (size_t number = first_; number <= at; ++number)
      for (Value result : ops_[number]->getResults())
        if (isTile(result) && isNeededLater(result, at) &&
            llvm::any_of(ir::tileSizes(result), [](OpFoldResult size) { return !sizeExpression(size); }))
          return false;
    return true;
  }

  llvm::function_ref<bool(Operation*)> isControl_;
  std::vector<Operation*> ops_;
  llvm::DenseMap<Operation*, size_t> numbers_;
  llvm::DenseMap<Operation*, int64_t> total_;  ///< work for an element, of the piece's operations so far
  llvm::DenseSet<Operation*> stored_;
  size_t first_ = 0;  ///< of the piece
  int64_t inPhases_ = 0;
};

}  // namespace

llvm::DenseSet<Operation*> findStoredValues(Block& block, llvm::function_ref<bool(Operation*)> isControl) {
  return StoredValues(block, isControl).run();
}

}  // namespace vortex::passes
