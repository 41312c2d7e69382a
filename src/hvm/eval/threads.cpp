// Several threads normalize positions of one term. They meet only at dup cells: who comes second waits, and two that wait for each other hold a
// cyclic net, whose projections are stuck. Waiting threads keep their stacks; a collection happens when all stand at a safe point.
#include "base/text.h"
#include "hvm/eval/evaluation.h"

#include <chrono>

namespace vortex::hvm {

static constexpr size_t kKept = 8;  // positions that a thread keeps for itself before it offers the oldest

bool Evaluation::drainTogether(Loc root) {
  workers_[0]->positions.push_back(root);
  running_ = static_cast<unsigned>(workers_.size());
  idle_ = 0;
  std::vector<std::thread> threads;
  for (size_t i = 1; i < workers_.size(); ++i)
    threads.emplace_back([this, i] { work(*workers_[i]); });
  work(*workers_[0]);
  for (std::thread& thread : threads)
    thread.join();
  running_ = 1;
  return !stopped_;
}

void Evaluation::work(Worker& worker) {
  for (;;) {
    while (!worker.positions.empty()) {
      Loc position = worker.positions.back();
      worker.positions.pop_back();
      if (!normalizePosition(worker, position))
        return;
      shareWork(worker);
    }
    if (!takeWork(worker))
      return;
  }
}

void Evaluation::shareWork(Worker& worker) {
  if (worker.positions.size() <= kKept || worker.sharedCount.load(std::memory_order_relaxed) > 0)
    return;
  std::lock_guard lock(worker.mutex);
  size_t count = worker.positions.size() / 2;
  worker.shared.insert(worker.shared.end(), worker.positions.begin(),
                       worker.positions.begin() + static_cast<ptrdiff_t>(count));
  worker.positions.erase(worker.positions.begin(), worker.positions.begin() + static_cast<ptrdiff_t>(count));
  worker.sharedCount = worker.shared.size();
}

/// Waits for positions. False: the pass is complete, or the run stops. A thread counts as idle until it has taken something, so when all are idle
/// nothing is left.
bool Evaluation::takeWork(Worker& worker) {
  size_t count = workers_.size(), offset = worker.machine->id() + options_.seed % count;
  ++idle_;
  for (unsigned round = 0;; ++round) {
    for (size_t i = 0; i < count; ++i) {
      Worker& victim = *workers_[(offset + i) % count];
      if (victim.sharedCount.load(std::memory_order_relaxed) == 0)
        continue;
      std::lock_guard lock(victim.mutex);
      size_t taken = (victim.shared.size() + 1) / 2;
      if (taken == 0)
        continue;
      --idle_;
      auto end = victim.shared.begin() + static_cast<ptrdiff_t>(taken);
      worker.positions.assign(victim.shared.begin(), end);
      victim.shared.erase(victim.shared.begin(), end);
      victim.sharedCount = victim.shared.size();
      return true;
    }
    if (stopped_)
      return false;
    if (idle_ == count) {
      std::lock_guard lock(mutex_);
      running_ = 0;
      resumed_.notify_all();
      return false;
    }
    if (heap_->attention() && !park(worker, nullptr))
      return false;
    if (round < 64)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

World::Wait Evaluation::awaitCell(Machine& machine, Term& projection) {
  Worker& worker = *workers_[machine.id()];
  Term* heap = heap_->words();
  auto isBusy = [&](Loc cell, Term& seen) {
    seen = __atomic_load_n(&heap[cell], __ATOMIC_ACQUIRE);
    return !isSub(seen) && tagOf(seen) == Busy;
  };
  Term seen;
  bool hasParked = false;  // then the projection may have been replaced
  for (unsigned round = 0; !hasParked && isBusy(locOf(projection), seen); ++round) {
    std::unique_lock lock(waitMutex_);
    worker.awaited = locOf(projection);
    // Who holds the cell, whom that thread waits for, and so on. Each stands still while the cell it waits for is busy.
    for (Loc cell = worker.awaited; cell != 0 && isBusy(cell, seen); cell = workers_[extOf(seen)]->awaited)
      if (extOf(seen) == machine.id()) {
        worker.awaited = 0;
        return Wait::Stuck;
      }
    lock.unlock();
    hasParked = heap_->attention();
    if (hasParked && !park(worker, &projection))
      return Wait::Stop;
    if (round < 64)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  std::lock_guard lock(waitMutex_);
  worker.awaited = 0;
  return Wait::Retry;
}

bool Evaluation::safePoint(Machine& machine, Term& current) { return park(*workers_[machine.id()], &current); }

/// Stands at a safe point; the last thread to come collects. False: the run stops, or every thread is idle.
bool Evaluation::park(Worker& worker, Term* current) {
  std::unique_lock lock(mutex_);
  if (!heap_->attention() || running_ == 0)
    return !stopped_;
  worker.current = current;
  if (++parked_ == running_ || stopped_) {
    if (!stopped_)
      collect();
    parked_ = 0;
    ++collection_;
    resumed_.notify_all();
  } else {
    uint64_t before = collection_;
    resumed_.wait(lock, [&] { return collection_ != before || stopped_ || running_ == 0; });
    if (collection_ == before)  // a later pass counts anew
      --parked_;
  }
  worker.current = nullptr;
  return !stopped_;
}

void Evaluation::stop(std::string error) {
  std::lock_guard lock(mutex_);
  // Several threads may fail: the smallest message, whatever the schedule.
  if (!stopped_ || error < error_)
    error_ = std::move(error);
  stopped_ = true;
  heap_->attention() = true;
  resumed_.notify_all();
}

void Evaluation::collect() {
  heap_->attention() = options_.collectsAtEverySafePoint;
  if (!heap_->wantsCollection() && !options_.collectsAtEverySafePoint)
    return;
  heap_->beginMarking();
  uint64_t stackBytes = 0;
  for (const auto& worker : workers_) {
    if (worker->current)
      heap_->mark(worker->current, code_);
    worker->machine->markStack(*heap_);
    worker->machine->dropRegion();
    stackBytes += worker->machine->stackBytes();
    for (Loc root : worker->roots)
      heap_->markCell(root, code_);
  }
  for (Level& level : levels_)
    heap_->mark(&level.node, code_);
  for (std::deque<Term>& entries : queue_)
    for (Term& entry : entries)
      heap_->mark(&entry, code_);
  for (const auto& worker : workers_)
    std::erase_if(worker->stuckCells, [&](const StuckCell& stuck) { return !heap_->isMarkedCell(stuck.cell); });
  if (!heap_->endMarking(stackBytes)) {
    error_ = base::concat("Error: out of memory: the limit is ", heap_->limitBytes(), " bytes (--memory)");
    stopped_ = true;
    heap_->attention() = true;
  }
}

}  // namespace vortex::hvm
