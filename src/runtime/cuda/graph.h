// A recording as a graph of the driver: captured in a stream of its own, instantiated when it is first replayed.
#pragma once

#include "artifact/device_report.h"
#include "runtime/cuda/resources.h"
#include "runtime/hal/recording.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace vortex::cuda {

/// Replayed by the stream that recorded it only, so that its reports have one reader. That stream holds it until its replays are done.
class CudaGraph : public hal::Graph {
public:
  CudaGraph(const hal::Stream* stream, const hal::Device* device, std::shared_ptr<Resources> resources,
            hal::Recording recording);
  ~CudaGraph() override;
  uint32_t operations() const override;
  uint32_t launches() const override;
  Result<void> update(uint32_t launch, const hal::Launch& replacement) override;

  const hal::Stream* stream() const { return stream_; }
  // Under the stream's lock, with the context current:
  /// Queues a replay. Error: what the driver refuses; contents lost with a context.
  Result<void> replay(const StreamCoreRef& core);
  /// All replays are complete: the first fault since the last drain.
  std::optional<hal::RunFault> drain();
  /// Whether a replay can leave something in a report.
  bool reports() const;
  /// What a replay launches, in order. The graph keeps them.
  std::vector<const artifact::Kernel*> kernels() const;

private:
  Result<void> prepare(const ContextRef& context);
  Result<void> capture(const ContextRef& context, StreamHandle stream);
  Result<void> add(const ContextRef& context, StreamHandle stream, size_t operation, uint32_t launch);
  Result<void> addCopy(Context& context, StreamHandle stream, const hal::RecordedCopy& copy, hal::BufferRef& between);
  Result<void> instantiate(const StreamCoreRef& core, GraphHandle captured);
  void markUsed(const StreamCoreRef& core);
  artifact::DeviceReport* report(uint32_t launch) const;

  const hal::Stream* stream_;  ///< for comparison only
  const hal::Device* device_;
  std::shared_ptr<Resources> resources_;
  mutable std::mutex mutex_;  ///< over everything below
  hal::Recording recording_;
  ContextRef context_;  ///< of the handles; null before the first replay
  GraphExecHandle exec_ = nullptr;
  bool isCurrent_ = false;  ///< exec_ is what recording_ says
  bool runs_ = false;       ///< a replay's end has not been seen
  std::unique_ptr<PinnedMemory> reports_;
  std::vector<std::unique_ptr<PinnedMemory>> contents_;  ///< of writes, by operation
  std::vector<hal::BufferRef> between_;                  ///< for copies that overlap, by operation
};

}  // namespace vortex::cuda
