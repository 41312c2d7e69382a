// A run of a program: strong normal form or enumeration of collapsed terms.
#pragma once

#include "hvm/eval/entries.h"
#include "hvm/eval/machine.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>

namespace vortex::hvm {

struct EvaluationOptions {
  uint64_t memoryBytes = 0;
  unsigned threads = 1;
  uint64_t fuel = ~uint64_t(0);  // a run with more interactions fails
  uint64_t seed = 0;             // whom idle threads take work from first
  /// %gnf: reduces the term on a device as far as that can, and returns the number of interactions. The device may reduce both operands at once or not.
  std::function<Result<uint64_t>(Machine&, Term&, bool forks)> offload = {};
  bool forksOperands = true;              // with several threads: both operands of an operator at once
  bool collectsAtEverySafePoint = false;  // to test the collector
  uint64_t reserveWords = Heap::kReserveWords;
  bool forksAtEverySafePoint = false;  // to test forks
};

class Evaluation : public World {
public:
  static Result<std::unique_ptr<Evaluation>> create(const Code& code, const EvaluationOptions& options);

  /// The strong normal form of @main; the error is the text to print.
  Result<Term> normalizeMain(uint32_t definition);
  /// Calls `print` for each collapsed term in the normative order, at most `limit` times.
  Result<void> collapseMain(uint32_t definition, uint64_t limit, const std::function<void(Term)>& print);

  uint64_t interactions() const;
  std::vector<uint64_t> interactionsByThread() const;
  uint64_t offloadedInteractions() const { return offloaded_; }
  const Heap& heap() const { return *heap_; }

  bool safePoint(Machine& machine, Term& current) override;
  Normal normalize(Machine& machine, Term& value, bool mayOffload) override;
  Wait awaitCell(Machine& machine, Term& awaited) override;
  bool doubt() override;
  bool meetsCircle() override;
  void detachOperand(Machine& machine, Loc cell) override;

private:
  struct StuckCell {
    Loc cell, value;
    unsigned nested;  // by which call of normalizeAlone
  };
  struct Operand {
    Loc cell;
    uint64_t frame;  // its place on the stack: of the operator that offered it (0: none any more), or of its reduction
  };
  /// What belongs to one thread.
  struct Worker {
    std::unique_ptr<Machine> machine;
    std::vector<Loc> roots;      // cells
    std::vector<Loc> positions;  // to be normalized; they lie in nodes that a root reaches
    std::vector<Loc> postponed;  // those among them whose terms wait for open variables
    std::vector<StuckCell> stuckCells;
    unsigned nested = 0;
    uint64_t walkBytes = 0;              // of the lists of an OperandWalk
    Term* current = nullptr;             // while the thread stands at a safe point
    Loc awaited = 0;                     // the cell it waits for
    std::atomic<Loc> awaitedOperand{0};  // the same if that is an operand's and the thread does nothing else
    std::mutex mutex;                    // for all below
    std::deque<Loc> shared;              // positions that others may take, oldest first
    std::deque<Operand> operands;        // that others may reduce, oldest first
    std::vector<Operand> reduced;        // operands that this thread reduces
    std::vector<Operand> helped;  // those that it waits for while it reduces others; frame: where it came to them
    std::atomic<size_t> sharedCount{0}, operandCount{0}, helpedCount{0};
  };

  explicit Evaluation(const Code& code, const EvaluationOptions& options) : code_(code), options_(options) {}
  Result<void> begin();
  bool beginAgain();

  // Strong normal form.
  Result<Term> normalizeRoot(uint32_t definition);
  Normal normalizeCell(Worker& worker, Loc root);
  Normal normalizePostponed(Worker& worker, Loc root, size_t floor);
  bool drainAlone(Worker& worker, size_t floor);
  bool comesToSafePoint(Worker& worker);
  bool reducePostponedOperands(Worker& worker, size_t floor);
  class OperandWalk;
  bool reducePosition(Worker& worker, Loc position);
  bool normalizePosition(Worker& worker, Loc position);
  void visitValue(Worker& worker, Term value, Loc position);
  bool freezeStuckCell(Worker& worker, Term& value, Loc& position);
  void thawStuckCells(Worker& worker);

  // Threads.
  bool drainTogether(Loc root);
  void collectPostponed();
  void work(Worker& worker);
  void startThread();
  bool takeWork(Worker& worker, Loc& operand);
  bool takePositions(Worker& worker, Worker& victim);
  void beginSharing();
  void shareWork(Worker& worker);
  void askEverybody();
  void offerOperands(Worker& worker);
  Loc takeOperand(Worker& victim, Loc purpose);
  bool isOpen(Loc cell) const;
  bool reduceOperand(Worker& worker, Loc cell);
  std::vector<Loc> awaitedFor(Loc cell, Worker& holder);
  Loc takePart(Loc awaited, bool asks);
  bool helpReduce(Worker& worker, Term& awaited, bool asks, bool& goesOn);
  bool isCyclic(const Worker& worker) const;
  bool await(Worker& worker, Term awaited);
  void markOperands(Worker& worker);
  void enterIdleness();
  void leaveIdleness();
  bool park(Worker& worker, Term* current);
  void collectAndResume();
  void collect();
  uint64_t listBytes() const;
  void stop(std::string error);

  // Collapse: one step (§10.1) keeps its own stack of nodes whose fields are being collapsed.
  struct Level {
    Term node;
    uint32_t index, count;  // no fields: a lambda, whose body was taken out
    int sup;                // the leftmost field that is a superposition, -1 if none
  };
  Result<void> collapseRoot(uint32_t definition, uint64_t limit, const std::function<void(Term)>& print);
  void fetchAhead(Entries& entries) const;
  bool collapse(Term& term);
  void enterLevel(Level level);
  bool descend(Term& term);
  bool ascend(Term& term);
  Term lift(const Level& level);

  bool isOutOfFuel(uint64_t count);
  bool hasCopiedLambda() const;
  Machine& first() const { return *workers_[0]->machine; }
  Error failure() const { return Error{error_}; }

  const Code& code_;
  EvaluationOptions options_;
  std::unique_ptr<Heap> heap_;
  std::vector<std::unique_ptr<Worker>> workers_;

  std::mutex mutex_;  // for all below up to the collapse part
  std::condition_variable resumed_;
  uint64_t offloaded_ = 0;              // interactions of devices
  std::vector<std::thread> threads_;    // all but the first; more are started while there is work for them
  std::atomic<unsigned> running_{1};    // threads that take part in collections
  unsigned parked_ = 0;                 // those of them that stand
  unsigned waiting_ = 0, leaving_ = 0;  // of those that stand: for a collection, and after one
  uint64_t collection_ = 0;
  std::string error_;
  std::atomic<bool> stopped_{false};
  std::atomic<unsigned> idle_{0};
  std::atomic<bool> hasForked_{false};
  std::atomic<bool> hasCircle_{false};  // of copies, while several threads had work
  std::atomic<bool> isShared_{false};   // some work was given away
  std::atomic<uint64_t> calls_{0};      // of %nf
  std::mutex waitMutex_;                // for Worker::awaited: who sets it last sees the whole circle

  std::vector<Level> levels_;
  static constexpr size_t kWatchedLevels = 1 << 16;
  size_t watchedLevels_ = kWatchedLevels;
  uint32_t depth_ = 0;  // lambdas among them
  std::array<Entries, 64> queue_;
  uint64_t printed_ = 0;  // lines, of all runs
};

}  // namespace vortex::hvm
