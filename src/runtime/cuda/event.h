#pragma once

#include "runtime/cuda/context.h"
#include "runtime/hal/device.h"

#include <memory>
#include <mutex>

namespace vortex::cuda {

/// After a loss of the context an event counts as never recorded.
class CudaEvent : public hal::Event {
public:
  CudaEvent(const hal::Device* device, std::shared_ptr<Gpu> gpu) : device_(device), gpu_(std::move(gpu)) {}
  ~CudaEvent() override;
  bool isComplete() const override;
  Result<void> wait() override;
  Result<int64_t> nanosecondsSince(hal::Event& start) override;

  const hal::Device* device() const { return device_; }
  Result<void> record(const ContextRef& context, StreamHandle stream);
  /// Later work of the stream waits for the latest record.
  Result<void> holdUp(const ContextRef& context, StreamHandle stream);

private:
  bool isRecorded() const { return recorded_ && !context_->isLost(); }
  void destroy();

  const hal::Device* device_;
  std::shared_ptr<Gpu> gpu_;
  mutable std::mutex mutex_;
  ContextRef context_;  ///< of handle_
  EventHandle handle_ = nullptr;
  bool recorded_ = false;
};

}  // namespace vortex::cuda
