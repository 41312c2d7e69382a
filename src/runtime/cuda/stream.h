#pragma once

#include "runtime/cuda/event.h"
#include "runtime/cuda/graph.h"
#include "runtime/cuda/launch_log.h"
#include "runtime/cuda/resources.h"
#include "runtime/cuda/staging.h"
#include "runtime/hal/launch.h"

#include <set>

namespace vortex::cuda {

/// Order after a fault: a kernel's fault is known only when the device has run it, so launches that were queued behind it may have run;
/// copies and fills wait for what can fault before they are queued, and are skipped after a fault.
class CudaStream : public hal::Stream {
public:
  /// `borrowed`: the stream of another library to work in; none: one of its own.
  static Result<hal::StreamRef> create(const hal::Device* device, std::shared_ptr<Resources> resources,
                                       std::optional<StreamHandle> borrowed = std::nullopt);
  ~CudaStream() override;
  Result<hal::BufferRef> allocate(hal::Device& device, uint64_t bytes) override;
  Result<void> fill(const hal::BufferRef& target, uint64_t offset, uint64_t bytes, uint8_t value) override;
  Result<void> copy(const hal::BufferRef& target, uint64_t targetOffset, const hal::BufferRef& source,
                    uint64_t sourceOffset, uint64_t bytes) override;
  Result<void> write(const hal::BufferRef& target, uint64_t offset, const void* from, uint64_t bytes) override;
  Result<void> read(void* into, const hal::BufferRef& source, uint64_t offset, uint64_t bytes) override;
  Result<void> record(const hal::EventRef& event) override;
  Result<void> wait(const hal::EventRef& event) override;
  Result<void> beginRecording() override;
  Result<hal::GraphRef> endRecording() override;
  Result<void> replay(const hal::GraphRef& graph) override;
  Result<void> synchronize() override;
  std::optional<hal::RunFault> lastFault() const override;

protected:
  Result<void> submitPhases(const hal::Launch& launch) override;
  Result<bool> readUnlessFaulted(void* into, const hal::BufferRef& source, uint64_t offset, uint64_t bytes) override;

private:
  CudaStream(const hal::Device* device, std::shared_ptr<Resources> resources, std::optional<StreamHandle> borrowed)
      : device_(device), resources_(std::move(resources)), borrowed_(borrowed) {}

  /// Records the operation if the stream records; else false.
  template <typename Make> bool recorded(const Make& make);
  /// Error while the stream records.
  Result<void> checkNotRecording(const char* operation) const;

  // All under mutex_:
  /// What is queued now becomes part of a graph of the lender's.
  bool isCaptured() const;
  Result<void> checkBuffer(const char* operation, const hal::BufferRef& buffer) const;
  /// Makes the stream usable, in a new context after a loss that has been reported.
  Result<void> renew();
  Result<StreamHandle> makeHandle(Context& context) const;
  /// Runs `work` in a usable stream's context unless a fault is pending; a loss of the context on the way becomes the pending fault.
  template <typename Work> Result<void> perform(bool afterFaults, const Work& work);
  Result<void> checkContexts(std::span<const hal::BufferRef> buffers) const;
  Result<void> settle();
  Result<void> start(const hal::Launch& launch);
  void noteLoss();
  Result<void> finish();
  void drainLog();
  Result<void> reportFault();

  const hal::Device* device_;
  std::shared_ptr<Resources> resources_;
  const std::optional<StreamHandle> borrowed_;
  /// Kernels that were launched while another library captured the stream, and memory that they took for themselves: its graph, of whose end nobody
  /// tells, uses both.
  std::set<std::shared_ptr<void>> captured_;
  std::string loss_;  ///< why a borrowed stream is gone
  mutable std::mutex mutex_;
  StreamCoreRef core_;
  std::unique_ptr<LaunchLog> log_;
  std::unique_ptr<Staging> staging_;
  std::optional<hal::Recording> recording_;
  std::vector<std::shared_ptr<CudaGraph>> replays_;  ///< whose end has not been seen
  std::optional<hal::RunFault> pending_, reported_;
};

}  // namespace vortex::cuda
