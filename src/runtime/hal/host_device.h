// What devices that work in the host's memory have in common.
#pragma once

#include "runtime/hal/host_memory.h"
#include "runtime/hal/host_stream.h"

namespace vortex::hal {

/// Buffers are memory of the host, events are complete when they are recorded. Streams and kernels are the driver's.
class HostDevice : public Device {
public:
  const DeviceInfo& info() const override { return info_; }
  Result<uint64_t> availableBytes() const override { return memory_->availableBytes(); }
  Result<BufferRef> allocate(uint64_t bytes) override { return memory_->allocate(this, bytes); }
  Result<BufferRef> wrap(void* memory, uint64_t bytes, bool readOnly) override {
    return HostMemory::wrap(this, memory, bytes, readOnly);
  }
  Result<EventRef> createEvent() override { return EventRef(std::make_shared<HostEvent>(this)); }

protected:
  explicit HostDevice(const HostMemory::Options& memory) : memory_(HostMemory::create(memory)) {
    info_.memoryBytes = memory_->limitBytes();
    info_.hostMemory = true;
  }

  const std::shared_ptr<HostMemory> memory_;
  DeviceInfo info_;
};

}  // namespace vortex::hal
