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

#include "llvm/ADT/SetVector.h"

namespace vortex::passes {

using namespace mlir;

namespace {

/// Of one element, and of what all phases of a piece compute of each element.
constexpr int64_t kMostComputed = 64, kMostInPhases = 512;
/// As many times as the program writes it down.
constexpr int64_t kMostTimes = 4;
constexpr int64_t kCapped = int64_t(1) << 40;

/// Operations of the block are told by their numbers, in order.
class StoredValues {
public:
  StoredValues(Block& block, llvm::function_ref<bool(Operation*)> isControl) {
    for (Operation& op : block.without_terminator()) {
      numbers_[&op] = nodes_.size();
      nodes_.push_back({&op, isControl(&op), isLazy(&op), ir::isElementwise(&op), {}});
      llvm::SmallSetVector<size_t, 4> sources;
      Clusters::forEachOperand(&op, [&](Value value) {
        auto number = numbers_.find(value.getDefiningOp());
        if (number != numbers_.end() && nodes_[number->second].isLazy)
          sources.insert(number->second);
      });
      nodes_.back().sources.assign(sources.begin(), sources.end());
    }
    total_.resize(nodes_.size(), {nodes_.size(), 0});
    readsElsewhere_.resize(nodes_.size());
    seenIn_.resize(nodes_.size());
  }

  llvm::DenseSet<Operation*> run() {
    for (size_t at = 0; at < nodes_.size(); ++at) {
      const Node& node = nodes_[at];
      if (node.isControl) {
        begin(at + 1);
        continue;
      }
      readsElsewhere_[at] = readsElsewhere(at);
      std::optional<size_t> cut;
      if (!node.isLazy) {
        inPhases_ += total(at);
        if (inPhases_ > kMostInPhases && inPhases_ > kMostTimes * static_cast<int64_t>(at + 1 - first_))
          cut = dearest(at, false);
      } else if (readsElsewhere_[at] && exceeds(at)) {
        cut = dearest(at, true);
      }
      if (!cut)
        continue;
      stored_.insert(nodes_[*cut].op);
      begin(*cut + 1);
      at = *cut;
    }
    return std::move(stored_);
  }

private:
  struct Node {
    Operation* op;
    bool isControl;
    bool isLazy;                     ///< computed wherever it is needed
    bool keepsPlaces;                ///< its element is computed from the same element of its operands
    SmallVector<size_t, 2> sources;  ///< lazy ones, each once
  };

  void begin(size_t at) {
    first_ = at;
    inPhases_ = 0;
  }

  static bool isLazy(Operation* op) {
    return op->getNumResults() == 1 && op->getNumRegions() == 0 && isPure(op) && isTile(op->getResult(0)) &&
           !isa<ir::ReduceOp, ir::DotOp, ir::ScanOp>(op);
  }

  /// What is computed again for the operation; all else is at hand.
  auto sourcesOf(size_t at) const {
    return llvm::make_filter_range(nodes_[at].sources, [this](size_t source) { return source >= first_; });
  }

  /// Whether an operation on the way to the element reads other elements of what is computed again. Where none does, each operation is
  /// computed once for it.
  bool readsElsewhere(size_t at) const {
    return llvm::any_of(sourcesOf(at),
                        [&](size_t source) { return !nodes_[at].keepsPlaces || readsElsewhere_[source]; });
  }

  /// Calls `visit` with the operation and all from which it is computed, once each, where `follows` of their users.
  void forEachBehind(size_t root, llvm::function_ref<bool(size_t)> follows,
                     llvm::function_ref<void(size_t)> visit) const {
    ++round_;
    seenIn_[root] = round_;
    SmallVector<size_t> pending{root};
    while (!pending.empty()) {
      const size_t each = pending.pop_back_val();
      visit(each);
      if (!follows(each))
        continue;
      for (size_t source : sourcesOf(each))
        if (seenIn_[source] != round_) {
          seenIn_[source] = round_;
          pending.push_back(source);
        }
    }
  }

  /// Work for an element of an operation of this piece.
  int64_t total(size_t at) const {
    if (total_[at].first == first_)
      return total_[at].second;
    int64_t work = 0;
    SmallVector<size_t> elsewhere;
    forEachBehind(
        at, [&](size_t each) { return nodes_[each].keepsPlaces; },
        [&](size_t each) {
          ++work;
          if (!nodes_[each].keepsPlaces)
            llvm::append_range(elsewhere, sourcesOf(each));
        });
    for (size_t source : elsewhere)
      work = std::min(work + total(source), kCapped);
    total_[at] = {first_, work};
    return work;
  }

  /// More than the limit, and than so many times what is written down.
  bool exceeds(size_t at) const {
    if (total(at) <= kMostComputed)
      return false;
    int64_t written = 0;
    forEachBehind(at, [](size_t) { return true; }, [&](size_t) { ++written; });
    return total(at) > kMostTimes * written;
  }

  /// What may be stored of all that the operation is computed from: read at other places, or needed by a later one, too.
  std::optional<size_t> dearest(size_t at, bool isReadElsewhere) const {
    std::optional<size_t> best;
    int64_t most = 1;
    SmallVector<size_t> behind;
    forEachBehind(at, [](size_t) { return true; }, [&](size_t each) { behind.push_back(each); });
    for (size_t each : behind)
      for (size_t source : sourcesOf(each)) {
        const bool isWanted =
            isReadElsewhere ? !nodes_[each].keepsPlaces : isNeededLater(nodes_[source].op->getResult(0), at);
        if (isWanted && total(source) > most && mayCut(source)) {
          most = total(source);
          best = source;
        }
      }
    return best;
  }

  bool isNeededLater(Value value, size_t at) const {
    return llvm::any_of(value.getUsers(), [&](Operation* user) { return numberOf(user) > at; });
  }

  /// Of the block's operation that it stands in.
  size_t numberOf(Operation* op) const {
    auto number = numbers_.find(nodes_[0].op->getBlock()->findAncestorOpInBlock(*op));
    return number == numbers_.end() ? nodes_.size() : number->second;
  }

  /// The extents of all tiles that are needed behind the operation are known before the launch.
  bool mayCut(size_t at) const {
    for (size_t number = first_; number <= at; ++number)
      for (Value result : nodes_[number].op->getResults())
        if (isTile(result) && isNeededLater(result, at) &&
            llvm::any_of(ir::tileSizes(result), [](OpFoldResult size) { return !sizeExpression(size); }))
          return false;
    return true;
  }

  std::vector<Node> nodes_;
  llvm::DenseMap<Operation*, size_t> numbers_;
  llvm::DenseSet<Operation*> stored_;
  size_t first_ = 0;  ///< of the piece
  int64_t inPhases_ = 0;
  mutable std::vector<std::pair<size_t, int64_t>> total_;  ///< asked for so far, of the piece that starts there
  std::vector<bool> readsElsewhere_;                       ///< of the piece so far
  mutable std::vector<unsigned> seenIn_;                   ///< the last round of forEachBehind that met it
  mutable unsigned round_ = 0;
};

}  // namespace

llvm::DenseSet<Operation*> findStoredValues(Block& block, llvm::function_ref<bool(Operation*)> isControl) {
  return StoredValues(block, isControl).run();
}

}  // namespace vortex::passes
