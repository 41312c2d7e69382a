// Device memory, allocated and freed in the order of streams.
#pragma once

#include "runtime/cuda/context.h"
#include "runtime/hal/device.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace vortex::cuda {

/// A stream of one context; shared by the hal stream, which replaces it after a loss, and by the buffers that its work uses.
class StreamCore {
public:
  StreamCore(ContextRef context, StreamHandle handle, bool borrowed = false)
      : context(std::move(context)), handle(handle), isBorrowed(borrowed) {}
  ~StreamCore();
  StreamCore(const StreamCore&) = delete;
  StreamCore& operator=(const StreamCore&) = delete;
  const ContextRef context;
  const StreamHandle handle;
  const bool isBorrowed;  ///< of another library: not destroyed

  /// Later work of `other` waits for all work so far. The context is current. Errors: as the driver says.
  Result<void> holdUp(StreamHandle other);
  /// Frees the memory behind all work so far. False: the stream was given back, or the driver refuses. The context is current.
  bool freeBehind(DevicePointer pointer);
  /// A borrowed stream may be destroyed from now on: others wait for the work it has had.
  void giveBack();

private:
  std::mutex mutex_;
  bool isGivenBack_ = false;
  EventHandle end_ =
      nullptr;  ///< behind the last work of a stream that was given back; null if that could not be recorded
};
using StreamCoreRef = std::shared_ptr<StreamCore>;
/// Waits for all work of the stream; false if that cannot be seen. The context is current.
bool waitUntilIdle(const StreamCore& stream);

/// Sum of a device's allocations; shared, because buffers outlive devices.
struct Accounting {
  explicit Accounting(uint64_t limitBytes) : limitBytes(limitBytes) {}
  const uint64_t limitBytes;
  std::atomic<uint64_t> liveBytes{0};
};

/// The end of one that was allocated here does not wait: the storage is freed behind the last work of every stream that used it. The end of a
/// wrapped one waits for the work of streams made here.
class CudaBuffer : public hal::Buffer {
public:
  CudaBuffer(const hal::Device* device, ContextRef context, DevicePointer pointer, uint64_t bytes,
             std::shared_ptr<Accounting> accounting)
      : Buffer(device, bytes, pointer, nullptr), context_(std::move(context)), accounting_(std::move(accounting)) {}
  /// Memory of another library.
  CudaBuffer(const hal::Device* device, ContextRef context, DevicePointer pointer, uint64_t bytes,
             std::shared_ptr<void> owner, bool readOnly)
      : Buffer(device, bytes, pointer, nullptr, readOnly), context_(std::move(context)), owner_(std::move(owner)) {}
  ~CudaBuffer() override;

  const ContextRef& context() const { return context_; }
  /// Remembers that work of the stream was given this buffer. One load when the same stream uses it again.
  void usedBy(const StreamCoreRef& stream) {
    if (lastUser_.load(std::memory_order_relaxed) != stream.get())
      addUser(stream);
  }

private:
  void addUser(const StreamCoreRef& stream);
  void free();
  void waitForUsers();

  ContextRef context_;
  std::shared_ptr<Accounting> accounting_;  ///< null: not allocated here
  std::shared_ptr<void> owner_;
  std::atomic<const StreamCore*> lastUser_{nullptr};
  std::mutex mutex_;
  std::vector<StreamCoreRef> users_;
};

/// Usable by every stream when it returns, or by `stream` and what is ordered behind it: memory that was freed in a stream is then there for it at
/// once, where others would have to wait or get new memory. When the device is full, waits for pending frees once and tries again. Error:
/// requested, available.
Result<hal::BufferRef> allocate(const hal::Device* device, Gpu& gpu, const std::shared_ptr<Accounting>& accounting,
                                uint64_t bytes, const StreamCoreRef& stream = nullptr);

/// A buffer over memory that another library allocated. Error: the driver does not know the whole range as memory of this device.
Result<hal::BufferRef> wrapDevice(const hal::Device* device, Gpu& gpu, DevicePointer address, uint64_t bytes,
                                  std::shared_ptr<void> owner, bool readOnly);

/// Bytes an allocation could get: what the device has left plus what the pool keeps, within the limit.
Result<uint64_t> availableBytes(Gpu& gpu, const Accounting& accounting);

/// Page-locked host memory that kernels can reach. Ordinary memory that is registered: it stays readable when the context is lost.
class PinnedMemory {
public:
  static Result<std::unique_ptr<PinnedMemory>> create(ContextRef context, uint64_t bytes);
  /// The device must be done with it, or lost: a lost device may still be copying, so the storage then lives as long as the context.
  ~PinnedMemory();
  /// For memory whose last use could not be waited for: the storage lives as long as the context.
  static void abandon(std::unique_ptr<PinnedMemory> memory);
  uint8_t* host() const { return static_cast<uint8_t*>(host_); }
  DevicePointer device() const { return device_; }
  uint64_t bytes() const { return bytes_; }
  const ContextRef& context() const { return context_; }

private:
  PinnedMemory(ContextRef context, void* host, DevicePointer device, uint64_t bytes)
      : context_(std::move(context)), host_(host), device_(device), bytes_(bytes) {}
  ContextRef context_;
  void* host_;
  DevicePointer device_;
  uint64_t bytes_;
  bool isAbandoned_ = false;
};

/// Page-locked memory that nobody uses now: getting it from the system takes longer than most copies. Threads: all members.
class PinnedPool {
public:
  /// Exactly this many bytes of this context; contents undefined.
  Result<std::unique_ptr<PinnedMemory>> take(const ContextRef& context, uint64_t bytes);
  /// The device must be done with it.
  void give(std::unique_ptr<PinnedMemory> memory);
  /// After use in a stream; null is nothing. `isIdle`: that stream's work was seen to end.
  void giveBack(std::unique_ptr<PinnedMemory> memory, bool isIdle);

private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<PinnedMemory>> kept_;
};

}  // namespace vortex::cuda
