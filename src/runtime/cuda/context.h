// One GPU, and the lives of its primary context.
//
// Some device faults (an access outside every allocation, a hardware error) end the context with everything in it. The process goes on: where
// the driver allows it a Gpu makes a new Context, and streams, events and kernels move to it on next use; else every use of the device is an
// error that says so. Buffers cannot move: their contents are gone.
#pragma once

#include "runtime/cuda/api.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace vortex::cuda {

/// One life of a GPU's primary context with the resources every user shares. Threads: all members.
class Context {
public:
  Context(std::shared_ptr<const Api> api, DeviceHandle device, int index)
      : api_(std::move(api)), device_(device), index_(index) {}
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Result<void> create();

  const Api& api() const { return *api_; }
  int deviceIndex() const { return index_; }
  ContextHandle handle() const { return handle_; }
  PoolHandle pool() const { return pool_; }  ///< null if the device has none: allocations then synchronise
  StreamHandle allocationStream() const {
    return allocationStream_;
  }  ///< holds allocations only, so that it is never waited for
  StreamHandle freeStream() const { return freeStream_; }  ///< holds frees behind the work of several streams

  /// True once a fault has ended the context; nothing made in it may be used or freed any more.
  bool isLost() const { return lost_.load(std::memory_order_acquire); }
  /// Why; empty while it lives.
  std::string lossReason() const;

  /// Success, or the error; a code that ends the context is remembered.
  Result<void> check(const char* what, Code code);

  /// An event without timing, for ordering streams; comes from and goes back to a list.
  Result<EventHandle> takeEvent();
  void giveEvent(EventHandle event);
  /// Frees ordinary memory, unlocked or not, when the context has ended: until then work that nobody could wait for may use it.
  void freeAtEnd(void* host);

private:
  void note(const std::string& reason);

  std::shared_ptr<const Api> api_;
  DeviceHandle device_;
  int index_;
  ContextHandle handle_ = nullptr;
  PoolHandle pool_ = nullptr;
  StreamHandle allocationStream_ = nullptr, freeStream_ = nullptr;
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::string lossReason_;
  std::vector<EventHandle> events_;
  std::vector<void*> freedAtEnd_;
};
using ContextRef = std::shared_ptr<Context>;

/// For a scope of this thread, calls that a capture of another library forbids (memory, modules, waits for streams of ours): no capture is meant by them.
class BesideCaptures {
public:
  explicit BesideCaptures(const Api& api) : api_(api) { api_.exchangeCaptureMode(&mode_); }
  ~BesideCaptures() { api_.exchangeCaptureMode(&mode_); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

private:
  const Api& api_;
  int mode_ = kCaptureRelaxed;  ///< then the thread's own
};

/// Makes a context current on this thread for a scope; free if it is already.
class Enter {
public:
  explicit Enter(const Context& context) : api_(context.api()) {
    ContextHandle current = nullptr;
    if (api_.contextCurrent(&current) == kSuccess && current == context.handle())
      return;
    pushed_ = api_.contextPush(context.handle()) == kSuccess;
  }
  ~Enter() {
    ContextHandle popped = nullptr;
    if (pushed_)
      api_.contextPop(&popped);
  }
  Enter(const Enter&) = delete;
  Enter& operator=(const Enter&) = delete;

private:
  const Api& api_;
  bool pushed_ = false;
};

/// What a device is, read once.
struct GpuFacts {
  std::string product;
  uint64_t memoryBytes = 0;
  int capability = 0;  ///< 90 for compute capability 9.0
  int multiprocessors = 0;
  int maxThreadsPerBlock = 0;
  int sharedOptInBytes = 0;
  int maxGrid[3] = {0, 0, 0};
  bool hasPools = false;
};

class Gpu {
public:
  /// Error: the driver refuses to describe the device.
  static Result<std::shared_ptr<Gpu>> open(std::shared_ptr<const Api> api, int index);

  const Api& api() const { return *api_; }
  const GpuFacts& facts() const { return facts_; }
  int index() const { return index_; }

  /// The living context; made on first use, and made anew after a loss. Error: the device cannot be brought back, or has no memory left.
  Result<ContextRef> context();

private:
  Gpu(std::shared_ptr<const Api> api, int index) : api_(std::move(api)), index_(index) {}
  Result<void> readFacts();

  std::shared_ptr<const Api> api_;
  int index_;
  DeviceHandle device_ = 0;
  GpuFacts facts_;
  std::mutex mutex_;
  ContextRef context_;
};

}  // namespace vortex::cuda
