// What is postponed may wait in operators whose other operand binds the variable. Another thread might have reduced that one ahead (forks.cpp), so it
// is reduced before anything is taken for final.
#include "hvm/eval/evaluation.h"

#include <unordered_set>
#include <utility>

namespace vortex::hvm {

/// Goes through what a postponed term waits for, down to the variable, then through the other operands on the way, the innermost first. The dup cells
/// that the way leads through are busy: an operand may refer to them, and then waits. So nothing changes the way while operands are reduced.
class Evaluation::OperandWalk {
public:
  OperandWalk(Evaluation& evaluation, Worker& worker)
      : evaluation_(evaluation), worker_(worker), machine_(*worker.machine), heap_(machine_.heapWords()) {}

  /// False: the run stops.
  bool run(Loc position) {
    branches_.push_back({position, 0});
    while (!branches_.empty()) {
      const Branch branch = branches_.back();
      branches_.pop_back();
      leaveCells(branch.cells);
      for (const Term* word = heap_ + branch.start; word;)
        if (!step(word))
          return false;
    }
    leaveCells(0);
    worker_.walkBytes = 0;
    return true;
  }

private:
  struct Branch {
    Loc start;
    size_t cells;  // on the way to it
  };

  /// From the term in *word to what it waits for; null: nothing.
  bool step(const Term*& word) {
    const Term term = *word & ~kSub;
    const Loc at = locOf(term);
    switch (tagOf(term)) {
    case Var:
    case Fut: word = isSub(heap_[at]) ? heap_ + at : nullptr; return true;
    case Dp0:
    case Dp1: return stepInto(at, word);
    case Op2:
    case Eql:
      if (awaitedField(tagOf(term), tagOf(heap_[at])) == 1) {
        word = heap_ + at + 1;
        return true;
      }
      if (!isReduced(heap_[at + 1]) && !reduceAhead(at + 1))
        return false;
      branches_.push_back({at + 1, cells_.size()});
      word = heap_ + at;
      return true;
    case App:
    case And:
    case Or:
    case Dsu:
    case Ddu: word = heap_ + at + awaitedField(tagOf(term), tagOf(heap_[at])); return true;
    default: word = nullptr; return true;
    }
  }

  bool stepInto(Loc cell, const Term*& word) {
    const Term held = heap_[cell];
    if (isSub(held)) {
      word = heap_ + cell;
    } else if (isBusy(held) || !seen_.insert(cell).second) {
      word = nullptr;
    } else if (tagOf(held) == Stk) {
      word = heap_ + locOf(held);
    } else {
      word = enterCell(cell);
      return comesToSafePoint();
    }
    return true;
  }

  /// What the cell holds stands on the machine's stack meanwhile.
  const Term* enterCell(Loc cell) {
    Term* const kept = machine_.stackTop();
    *kept = std::exchange(heap_[cell], makeTerm(Busy, machine_.id()));
    machine_.setStackTop(kept + 1);
    cells_.push_back(cell);
    return kept;
  }
  void leaveCells(size_t count) {
    for (; cells_.size() > count; cells_.pop_back()) {
      machine_.setStackTop(machine_.stackTop() - 1);
      heap_[cells_.back()] = *machine_.stackTop();
    }
  }

  static bool isReduced(Term term) { return isPlainValue(tagOf(term)) || tagOf(term) == Fun; }
  bool reduceAhead(Loc operand) {
    if (!comesToSafePoint())
      return false;
    const bool before = machine_.takeBusyAsOpen(true);
    if (!evaluation_.reducePosition(worker_, operand))
      return false;
    machine_.takeBusyAsOpen(before);
    return true;
  }
  bool comesToSafePoint() {
    static constexpr uint64_t kSeenBytes = 40;
    worker_.walkBytes =
        branches_.capacity() * sizeof(Branch) + cells_.capacity() * sizeof(Loc) + seen_.size() * kSeenBytes;
    return evaluation_.comesToSafePoint(worker_);
  }

  Evaluation& evaluation_;
  Worker& worker_;
  Machine& machine_;
  Term* const heap_;
  std::vector<Branch> branches_;  // to be gone into
  std::vector<Loc> cells_;        // that the way leads through
  std::unordered_set<Loc> seen_;
};

bool Evaluation::reducePostponedOperands(Worker& worker, size_t floor) {
  for (size_t i = floor; i < worker.postponed.size(); ++i)
    if (!comesToSafePoint(worker) || !OperandWalk(*this, worker).run(worker.postponed[i]))
      return false;
  return true;
}

}  // namespace vortex::hvm
