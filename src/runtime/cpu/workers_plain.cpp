// Workers for builds under ThreadSanitizer, which does not see how TBB, not built for it, orders its threads: every access of a part would be a
// finding. Here plain threads keep the same contract.
#include "runtime/cpu/workers.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace vortex::cpu {

struct Workers::Pool {};

Workers::Workers(uint32_t threads) : threads_(std::max<uint32_t>(threads, 1)) {}

Workers::~Workers() = default;

void Workers::forEach(uint64_t begin, uint64_t end, uint64_t grain, const Part& part) {
  grain = std::max<uint64_t>(grain, 1);
  std::atomic<uint64_t> next{begin};
  const auto work = [&](uint32_t index) {
    for (;;) {
      // Nothing but the parts themselves may order what they do.
      const uint64_t first = next.fetch_add(grain, std::memory_order_relaxed);
      if (first >= end)
        return;
      part(first, std::min(first + grain, end), index);
    }
  };
  const uint64_t parts = begin < end ? (end - begin - 1) / grain + 1 : 0;
  std::vector<std::thread> others;
  for (uint32_t index = 1; index < std::min<uint64_t>(threads_, parts); ++index)
    others.emplace_back(work, index);
  work(0);
  for (std::thread& other : others)
    other.join();
}

}  // namespace vortex::cpu
