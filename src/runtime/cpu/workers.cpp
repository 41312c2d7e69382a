#include "runtime/cpu/workers.h"

#include <algorithm>
#include <optional>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace vortex::cpu {

struct Workers::Pool {
  explicit Pool(uint32_t threads) : arena(static_cast<int>(threads)) {
    // oneTBB starts no more threads than the machine has unless told so.
    if (static_cast<int>(threads) > tbb::info::default_concurrency())
      raised.emplace(tbb::global_control::max_allowed_parallelism, threads);
  }
  std::optional<tbb::global_control> raised;
  tbb::task_arena arena;
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
  pool_->arena.execute([&] {
    // The automatic partitioner starts with a few parts per thread and splits further only where a thread runs dry.
    tbb::parallel_for(tbb::blocked_range<uint64_t>(begin, end, grain), [&](const tbb::blocked_range<uint64_t>& range) {
      part(range.begin(), range.end(), static_cast<uint32_t>(tbb::this_task_arena::current_thread_index()));
    });
  });
}

}  // namespace vortex::cpu
