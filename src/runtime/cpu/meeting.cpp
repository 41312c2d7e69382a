#include "runtime/cpu/meeting.h"

#include "base/text.h"

#include <pthread.h>

#include <vector>

namespace vortex::cpu {

/// The caller holds the lock.
void Meeting::open() {
  waiting_ = 0;
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

bool Meeting::meet() {
  std::unique_lock lock(mutex_);
  if (hasFailed_)
    return false;
  if (++waiting_ == present_) {
    open();
    return true;
  }
  const uint32_t round = round_.load(std::memory_order_relaxed);
  lock.unlock();
  round_.wait(round, std::memory_order_acquire);
  lock.lock();
  return !hasFailed_;
}

void Meeting::leave(bool failed) {
  const std::lock_guard lock(mutex_);
  --present_;
  hasFailed_ |= failed;
  if (waiting_ > 0 && (hasFailed_ || waiting_ == present_))
    open();
}

namespace {

/// What the threads share until all of them are there.
struct Start {
  const std::function<void(uint32_t)>& work;
  std::atomic<int> state{0};  ///< 1: work; -1: end
};

struct OneThread {
  Start* start;
  uint32_t number;
  pthread_t handle;
};

void* runThread(void* argument) {
  const auto* thread = static_cast<OneThread*>(argument);
  thread->start->state.wait(0, std::memory_order_acquire);
  if (thread->start->state.load(std::memory_order_acquire) > 0)
    thread->start->work(thread->number);
  return nullptr;
}

}  // namespace

base::Result<void> onThreads(uint32_t count, const std::function<void(uint32_t)>& work) {
  Start start{work};
  std::vector<OneThread> threads(count);
  uint32_t made = 0;
  for (; made < count; ++made) {
    threads[made] = {&start, made, {}};
    if (pthread_create(&threads[made].handle, nullptr, runThread, &threads[made]) != 0)
      break;
  }
  start.state.store(made == count ? 1 : -1, std::memory_order_release);
  start.state.notify_all();
  for (uint32_t i = 0; i < made; ++i)
    pthread_join(threads[i].handle, nullptr);
  if (made < count)
    return base::Error{base::concat("the system gives ", made, " of ", count, " threads")};
  return {};
}

}  // namespace vortex::cpu
