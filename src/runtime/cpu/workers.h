#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace vortex::cpu {

/// A pool of threads: a oneTBB arena, which starts them when first needed. Several callers may run work at once; they share the threads.
class Workers {
public:
  explicit Workers(uint32_t threads);
  ~Workers();

  uint32_t count() const { return threads_; }

  /// Part of [0, count), on worker `worker` < count(); no two parts run on one worker at the same time within a call.
  using Part = std::function<void(uint64_t begin, uint64_t end, uint32_t worker)>;
  /// Covers [begin, end) by parts of at least `grain` (but for the ends) and waits for all. The caller works along.
  void forEach(uint64_t begin, uint64_t end, uint64_t grain, const Part& part);

private:
  struct Pool;

  uint32_t threads_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace vortex::cpu
