// Blocks of a cooperative phase: each on a thread of its own, since they wait for each other.
#pragma once

#include "base/result.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

namespace vortex::cpu {

/// So many threads a process gets everywhere; more blocks at the same time are refused.
inline constexpr uint32_t kMostTogether = 1024;

/// A barrier of threads that may leave. Threads: all members.
class Meeting {
public:
  explicit Meeting(uint32_t threads) : present_(threads) {}
  /// Waits until all threads that have not left are here. False: one has failed.
  bool meet();
  /// The caller comes no more; `failed`: nobody is to wait or go on.
  void leave(bool failed);

private:
  void open();

  std::mutex mutex_;
  uint32_t present_, waiting_ = 0;
  bool hasFailed_ = false;
  std::atomic<uint32_t> round_{0};  ///< changes when those who wait go on
};

/// Calls `work` with 0 … count - 1, each on a thread of its own that starts when all threads are there. Error: the system gives no more threads;
/// nothing has run.
base::Result<void> onThreads(uint32_t count, const std::function<void(uint32_t)>& work);

}  // namespace vortex::cpu
