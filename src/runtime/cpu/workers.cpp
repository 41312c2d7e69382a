#include "runtime/cpu/workers.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <sched.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>
#include <thread>

namespace vortex::cpu {

/// Keeps pool threads off the core of the thread that launches. Linux likes to wake a thread on the core of its waker and then needs
/// 10 ms or more to move it; measured on two cores, a third of the launches after a pause ran on one of them.
class Placement : public tbb::task_scheduler_observer {
public:
  explicit Placement(tbb::task_arena& arena) : task_scheduler_observer(arena) {
    isKnown_ = sched_getaffinity(0, sizeof allowed_, &allowed_) == 0 && CPU_COUNT(&allowed_) > 1;
    observe(true);
  }
  ~Placement() override { observe(false); }

  void launching() {
    if (isKnown_)
      launchCore_.store(sched_getcpu(), std::memory_order_relaxed);
  }

  void on_scheduler_entry(bool isWorker) override {
    if (isWorker)
      leaveLaunchCore();
  }

  /// For pool threads. A thread that stays in the arena between launches does not enter again, so parts call it too (20 ns).
  void leaveLaunchCore() {
    const int core = launchCore_.load(std::memory_order_relaxed);
    if (!isKnown_ || core < 0 || sched_getcpu() != core || !CPU_ISSET(core, &allowed_))
      return;
    cpu_set_t others = allowed_;
    CPU_CLR(core, &others);
    sched_setaffinity(0, sizeof others, &others);
  }

private:
  cpu_set_t allowed_;
  bool isKnown_ = false;
  std::atomic<int> launchCore_{-1};
};

struct Workers::Pool {
  explicit Pool(uint32_t threads) : arena(static_cast<int>(threads)), placement(arena) {
    // oneTBB starts no more threads than the machine has unless told so.
    if (static_cast<int>(threads) > tbb::info::default_concurrency())
      raised.emplace(tbb::global_control::max_allowed_parallelism, threads);
  }
  std::optional<tbb::global_control> raised;
  tbb::task_arena arena;
  Placement placement;
};

Workers::Workers(uint32_t threads)
    : threads_(std::max<uint32_t>(threads, 1)), pool_(std::make_unique<Pool>(threads_)) {}

Workers::~Workers() = default;

void Workers::forEach(uint64_t begin, uint64_t end, uint64_t grain, const Part& part) {
  grain = std::max<uint64_t>(grain, 1);
  if (threads_ == 1 || end - begin <= grain) {
    if (begin != end)
      part(begin, end, 0);
    return;
  }
  const std::thread::id launcher = std::this_thread::get_id();
  pool_->placement.launching();
  pool_->arena.execute([&] {
    // The automatic partitioner starts with a few parts per thread and splits further only where a thread runs dry.
    tbb::parallel_for(tbb::blocked_range<uint64_t>(begin, end, grain), [&](const tbb::blocked_range<uint64_t>& range) {
      if (std::this_thread::get_id() != launcher)
        pool_->placement.leaveLaunchCore();
      part(range.begin(), range.end(), static_cast<uint32_t>(tbb::this_task_arena::current_thread_index()));
    });
  });
}

}  // namespace vortex::cpu
