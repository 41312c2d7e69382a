// Several threads normalize positions of one term. They meet only at dup cells: who comes second waits, and two that wait for each other hold a
// cyclic net, whose projections are stuck; which one is stuck first depends on the order, so one thread begins again. Waiting threads keep their stacks; a collection happens when all stand at a safe point.
#include "base/text.h"
#include "hvm/eval/evaluation.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace vortex::hvm {

static constexpr unsigned kLooks = 100;  // at a cell before a thread says that it waits
static constexpr size_t kKept = 8;       // positions that a thread keeps for itself before it offers the oldest

namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Between two looks at what other threads do. Some systems sleep for milliseconds when asked for 20 µs, so the first one is spent awake.
class Pause {
public:
  void wait() {
    spent_ = Clock::now() - begin_;
    if (spent_ < std::chrono::milliseconds(1))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::clamp<Clock::duration>(spent_ / 8, std::chrono::microseconds(20), kLongest));
  }
  /// Seldom enough that whoever is asked in vain loses little.
  bool isTimeToAsk() {
    if (spent_ < nextQuestion_)
      return false;
    nextQuestion_ =
        spent_ + std::min<Clock::duration>(spent_ + std::chrono::microseconds(2), std::chrono::milliseconds(1));
    return true;
  }

private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kLongest =
      std::chrono::microseconds(500);  // many idle threads must leave the processors to others
  Clock::time_point begin_ = Clock::now();
  Clock::duration spent_{0}, nextQuestion_{0};
};

}  // namespace

bool Evaluation::drainTogether(Loc root) {
  workers_[0]->positions.push_back(root);
  running_ = 1, idle_ = parked_ = 0;
  startThread();
  work(*workers_[0]);
  // The first thread comes back when the run stops or nobody has work, so nobody starts a thread any more.
  std::unique_lock lock(mutex_);
  std::vector<std::thread> threads = std::move(threads_);
  lock.unlock();
  for (std::thread& thread : threads)
    thread.join();
  threads_.clear();
  running_ = 1, idle_ = parked_ = 0;
  collectPostponed();
  return !stopped_;
}

/// From here on the first thread is alone, with what all have left.
void Evaluation::collectPostponed() {
  Worker& first = *workers_[0];
  first.machine->setAlone(true);
  for (const auto& worker : workers_) {
    if (worker.get() == &first)
      continue;
    first.postponed.insert(first.postponed.end(), worker->postponed.begin(), worker->postponed.end());
    first.stuckCells.insert(first.stuckCells.end(), worker->stuckCells.begin(), worker->stuckCells.end());
    worker->postponed.clear(), worker->stuckCells.clear();
  }
}

/// Who finds work starts the next thread, so that a small program does not wait for threads that it has no work for.
void Evaluation::startThread() {
  std::lock_guard lock(mutex_);
  if (stopped_ || running_ == workers_.size())
    return;
  Worker& worker = *workers_[running_];
  ++running_;
  threads_.emplace_back([this, &worker] { work(worker); });
}

void Evaluation::work(Worker& worker) {
  for (;;) {
    while (!worker.positions.empty()) {
      if (!comesToSafePoint(worker))
        return;
      Loc position = worker.positions.back();
      worker.positions.pop_back();
      if (!normalizePosition(worker, position))
        return;
      shareWork(worker);
    }
    Loc operand = 0;
    if (!takeWork(worker, operand))
      return;
    startThread();
    if (operand && !reduceOperand(worker, operand))
      return;
  }
}

/// Until the first work is given away a single thread reduces, without the cost of exchanges.
void Evaluation::beginSharing() {
  if (isShared_)
    return;
  for (const auto& worker : workers_)
    worker->machine->beginSharing();
  isShared_ = true;
}

void Evaluation::shareWork(Worker& worker) {
  if (worker.positions.size() <= kKept || worker.sharedCount.load(std::memory_order_relaxed) > 0)
    return;
  beginSharing();
  std::lock_guard lock(worker.mutex);
  size_t count = worker.positions.size() / 2;
  worker.shared.insert(worker.shared.end(), worker.positions.begin(),
                       worker.positions.begin() + static_cast<ptrdiff_t>(count));
  worker.positions.erase(worker.positions.begin(), worker.positions.begin() + static_cast<ptrdiff_t>(count));
  worker.sharedCount = worker.shared.size();
}

/// Half of what the victim shares.
bool Evaluation::takePositions(Worker& worker, Worker& victim) {
  if (victim.sharedCount.load(std::memory_order_relaxed) == 0)
    return false;
  std::lock_guard lock(victim.mutex);
  size_t taken = (victim.shared.size() + 1) / 2;
  if (taken == 0)
    return false;
  auto end = victim.shared.begin() + static_cast<ptrdiff_t>(taken);
  worker.positions.assign(victim.shared.begin(), end);
  victim.shared.erase(victim.shared.begin(), end);
  victim.sharedCount = victim.shared.size();
  return true;
}

/// Waits for positions or an operand. False: the pass is complete, or the run stops. A thread counts as idle until it has taken something, so when
/// all are idle nothing is left. (`idle_` is read first: threads only come, and who starts one is not idle.)
bool Evaluation::takeWork(Worker& worker, Loc& operand) {
  bool isIdle = false;
  for (Pause pause;; pause.wait()) {
    const size_t count = running_, offset = worker.machine->id() + options_.seed % count;
    for (size_t i = 0; i < count; ++i) {
      Worker& victim = *workers_[(offset + i) % count];
      if (victim.sharedCount.load(std::memory_order_relaxed) + victim.operandCount == 0)
        continue;
      if (isIdle)
        leaveIdleness(), isIdle = false;
      if (takePositions(worker, victim) || (operand = takeOperand(victim, 0)))
        return true;
    }
    if (!isIdle)
      enterIdleness(), isIdle = true;
    const unsigned idle = idle_;
    if (stopped_ || idle == running_)
      return false;
    if (pause.isTimeToAsk())
      askEverybody();
  }
}

/// From here on the thread holds nothing, and collections need not wait for it.
void Evaluation::enterIdleness() {
  std::lock_guard lock(mutex_);
  ++idle_;
  if (++parked_ == running_ && heap_->wantsEverybody())
    collectAndResume();
}

void Evaluation::leaveIdleness() {
  std::lock_guard lock(mutex_);
  --idle_, --parked_;
}

/// Does this thread wait for a cell that in the end waits for itself? Each thread of the chain stands still while the cell it waits for is busy.
bool Evaluation::isCyclic(const Worker& worker) const {
  Loc cell = worker.awaited;
  for (size_t steps = 0; cell != 0 && steps < workers_.size(); ++steps) {
    Term holder = __atomic_load_n(heap_->words() + cell, __ATOMIC_ACQUIRE);
    if (!isBusy(holder))
      return false;
    if (extOf(holder) == worker.machine->id())
      return true;
    cell = workers_[extOf(holder)]->awaited;
  }
  return false;
}

/// From now on the thread waits for that cell; 0: it goes on. False: it would wait for itself.
bool Evaluation::await(Worker& worker, Term awaited) {
  std::lock_guard lock(waitMutex_);
  worker.awaited = locOf(awaited);
  worker.awaitedOperand = tagOf(awaited) == Fut ? locOf(awaited) : 0;
  return !isCyclic(worker);
}

World::Wait Evaluation::awaitCell(Machine& machine, Term& awaited) {
  Worker& worker = *workers_[machine.id()];
  auto waits = [&] { return isBusy(__atomic_load_n(heap_->words() + locOf(awaited), __ATOMIC_ACQUIRE)); };
  for (unsigned looks = 0; looks < kLooks && !heap_->wantsEverybody(); ++looks) {  // most values come soon
    if (!waits())
      return Wait::Retry;
    relax();
  }
  Wait outcome = Wait::Retry;
  for (Pause pause; waits(); pause.wait()) {
    const bool asks = pause.isTimeToAsk();
    if (asks && !await(worker, awaited)) {
      outcome = Wait::Stuck;
      break;
    }
    bool hasMoved = true, goesOn = true;  // after a collection the term may have been replaced
    if (heap_->wantsEverybody())
      await(worker, 0), goesOn = park(worker, &awaited);
    else
      hasMoved = helpReduce(worker, awaited, asks, goesOn);
    if (!goesOn)
      outcome = Wait::Stop;
    if (hasMoved)
      break;
  }
  await(worker, 0);
  return outcome == Wait::Stuck && meetsCircle() ? Wait::Stop : outcome;
}

bool Evaluation::meetsCircle() {
  if (!isShared_)
    return false;
  hasCircle_ = true;
  stop("");
  return true;
}

bool Evaluation::safePoint(Machine& machine, Term& current) {
  Worker& worker = *workers_[machine.id()];
  if (machine.isAsked()) {
    if (!options_.forksAtEverySafePoint)
      machine.answer();
    offerOperands(worker);
  }
  if (machine.needsCollection())
    heap_->requestCollection();
  return !isOutOfFuel(machine.interactions()) && park(worker, &current);
}

/// Stands at a safe point; the last thread to come collects. False: the run stops.
bool Evaluation::park(Worker& worker, Term* current) {
  if (!heap_->wantsEverybody())
    return !stopped_;
  std::unique_lock lock(mutex_);
  resumed_.wait(lock, [&] { return leaving_ == 0 || stopped_; });  // else a fast thread could keep the others standing
  if (!heap_->wantsEverybody())
    return !stopped_;
  worker.current = current;
  if (++parked_ == running_) {
    collectAndResume();
  } else {
    uint64_t before = collection_;
    ++waiting_;
    resumed_.wait(lock, [&] { return collection_ != before || stopped_; });
    if (collection_ == before)
      --waiting_;
    else if (--leaving_ == 0)
      resumed_.notify_all();
  }
  --parked_;
  worker.current = nullptr;
  return !stopped_;
}

void Evaluation::collectAndResume() {
  if (!stopped_)
    collect();
  ++collection_;
  leaving_ += std::exchange(waiting_, 0);
  resumed_.notify_all();
}

void Evaluation::stop(std::string error) {
  std::lock_guard lock(mutex_);
  // Several threads may fail: the smallest message, whatever the schedule.
  if (!stopped_ || error < error_)
    error_ = std::move(error);
  stopped_ = true;
  heap_->setWantsEverybody(true);
  resumed_.notify_all();
}

/// What the lists of positions and entries take beside heap and stacks.
uint64_t Evaluation::listBytes() const {
  uint64_t bytes = levels_.capacity() * sizeof(Level);
  for (const auto& worker : workers_)
    bytes += (worker->positions.capacity() + worker->postponed.capacity() + worker->shared.size()) * sizeof(Loc) +
             worker->stuckCells.capacity() * sizeof(StuckCell) + worker->walkBytes;
  for (const Entries& entries : queue_)
    bytes += entries.size() * sizeof(Term);
  return bytes;
}

void Evaluation::collect() {
  heap_->setWantsEverybody(options_.collectsAtEverySafePoint);
  if (!heap_->wantsCollection() && !options_.collectsAtEverySafePoint)
    return;
  heap_->beginMarking();
  uint64_t otherBytes = listBytes();
  for (const auto& worker : workers_) {
    if (worker->current)
      heap_->mark(worker->current, code_);
    worker->machine->markStack(*heap_);
    worker->machine->startAfresh();
    otherBytes += worker->machine->stackBytes();
    for (Loc root : worker->roots)
      heap_->markCell(root, code_);
    markOperands(*worker);
  }
  for (Level& level : levels_)
    heap_->mark(&level.node, code_);
  static constexpr size_t kAhead = 8;
  for (Entries& entries : queue_)
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i + kAhead < entries.size())
        heap_->announce(entries[i + kAhead]);
      heap_->mark(&entries[i], code_);
    }
  for (const auto& worker : workers_)
    std::erase_if(worker->stuckCells, [&](const StuckCell& stuck) { return !heap_->isMarkedCell(stuck.cell); });
  if (!heap_->endMarking(otherBytes, running_ - idle_)) {
    error_ = base::concat("Error: out of memory: the limit is ", heap_->limitBytes(), " bytes (--memory)");
    stopped_ = true;
    heap_->setWantsEverybody(true);
  }
}

}  // namespace vortex::hvm
