// Streams and events of devices that work in the host's memory and on the calling thread.
//
// Why synchronous: a kernel already occupies every core, so running it beside the caller gains no overlap, while handing it to
// a queue thread costs a wake-up each way (5 to 50 µs) and blurs profiles and stack traces. Order is then program order by
// construction: an operation is complete when its call returns.
#pragma once

#include "runtime/hal/device.h"
#include "runtime/hal/launch.h"
#include "runtime/hal/recording.h"

#include <atomic>
#include <mutex>

namespace vortex::hal {

/// Completed as soon as it is recorded.
class HostEvent : public Event {
public:
  explicit HostEvent(const Device* device) : device_(device) {}
  bool isComplete() const override { return true; }
  Result<void> wait() override { return {}; }
  Result<int64_t> nanosecondsSince(Event& start) override;
  void record();
  const Device* device() const { return device_; }

private:
  const Device* device_;
  std::atomic<int64_t> recordedNs_{-1};  ///< steady clock; -1: never
};

class HostStream : public Stream {
public:
  explicit HostStream(const Device* device) : device_(device) {}
  Result<void> fill(const BufferRef& target, uint64_t offset, uint64_t bytes, uint8_t value) override;
  Result<void> copy(const BufferRef& target, uint64_t targetOffset, const BufferRef& source, uint64_t sourceOffset,
                    uint64_t bytes) override;
  Result<void> write(const BufferRef& target, uint64_t offset, const void* from, uint64_t bytes) override;
  Result<void> read(void* into, const BufferRef& source, uint64_t offset, uint64_t bytes) override;
  Result<void> record(const EventRef& event) override;
  Result<void> wait(const EventRef& event) override;
  Result<void> beginRecording() override;
  Result<GraphRef> endRecording() override;
  Result<void> replay(const GraphRef& graph) override;
  Result<void> synchronize() override;
  std::optional<RunFault> lastFault() const override;

protected:
  Result<void> submitPhases(const Launch& launch) override;
  Result<bool> readUnlessFaulted(void* into, const BufferRef& source, uint64_t offset, uint64_t bytes) override;
  using ByteRange = std::function<void(uint64_t begin, uint64_t end)>;
  /// Runs a checked launch to its end. An error of the result: nothing has run. A fault: the kernel stopped.
  virtual Result<std::optional<artifact::Fault>> execute(const Launch& launch) = 0;
  /// Covers [0, bytes) with calls of `work`, possibly from several threads.
  virtual void forEachChunk(uint64_t bytes, const ByteRange& work);

private:
  Result<void> checkOwner(const char* operation, const BufferRef& buffer) const;
  void copyBytes(void* target, const void* source, uint64_t bytes);
  /// Runs or records an operation that was checked.
  Result<void> take(RecordedOperation operation);
  /// Runs an operation that was checked. Under mutex_.
  Result<void> perform(const RecordedOperation& operation);
  Result<void> run(const Launch& launch);
  Result<void> reportFault();

  const Device* device_;
  mutable std::mutex mutex_;
  std::optional<Recording> recording_;
  std::optional<RunFault> pending_;  ///< work is skipped while set
  std::optional<RunFault> reported_;
};

}  // namespace vortex::hal
