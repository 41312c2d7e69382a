// Queues, command buffers and encoders. A misuse that Metal stops the program for is here an error of the command buffer: it names the call, the status
// becomes CommandBufferStatusError, and a command buffer that was not committed yet never runs.
#pragma once

#include "vortex/metal/device.h"

#include <functional>

namespace vortex::metal::MTL {

class CommandBuffer;

class CommandEncoder {
public:
  void setLabel(const NS::String*) {}
};

class ComputeCommandEncoder : public Opaque<ComputeCommandEncoder>, public CommandEncoder {
public:
  using Opaque::Opaque;
  void setComputePipelineState(const ComputePipelineState* pipeline);
  /// Indices up to 30. A null buffer takes away what was set.
  void setBuffer(const Buffer* buffer, NS::UInteger offset, NS::UInteger index);
  void setBufferOffset(NS::UInteger offset, NS::UInteger index);
  /// A copy of up to 4096 bytes.
  void setBytes(const void* bytes, NS::UInteger length, NS::UInteger index);
  /// A multiple of 16.
  void setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index);
  /// Threadgroups at the end of the grid are smaller where it is no multiple of them.
  void dispatchThreads(Size threadsPerGrid, Size threadsPerThreadgroup);
  void dispatchThreadgroups(Size threadgroupsPerGrid, Size threadsPerThreadgroup);
  /// Nothing is needed: commands run one after the other.
  void memoryBarrier(BarrierScope) {}
  void endEncoding();
};

class BlitCommandEncoder : public Opaque<BlitCommandEncoder>, public CommandEncoder {
public:
  using Opaque::Opaque;
  void copyFromBuffer(const Buffer* source, NS::UInteger sourceOffset, const Buffer* destination,
                      NS::UInteger destinationOffset, NS::UInteger size);
  void fillBuffer(const Buffer* buffer, NS::Range range, uint8_t value);
  void synchronizeResource(const Buffer*) {}
  void endEncoding();
};

class CommandBuffer : public Opaque<CommandBuffer> {
public:
  using Opaque::Opaque;
  using HandlerFunction = std::function<void(CommandBuffer*)>;
  /// After a misuse an encoder that has ended.
  ComputeCommandEncoder* computeCommandEncoder();
  ComputeCommandEncoder* computeCommandEncoder(DispatchType) { return computeCommandEncoder(); }
  BlitCommandEncoder* blitCommandEncoder();
  /// Handlers are called by the queue's thread.
  void addScheduledHandler(const HandlerFunction& handler);
  void addCompletedHandler(const HandlerFunction& handler);
  /// Takes the next place in the queue: what has a later one waits until this is committed, or gone.
  void enqueue();
  /// Takes the next place unless it has one.
  void commit();
  /// Until the handlers have returned, too.
  void waitUntilCompleted();
  CommandBufferStatus status() const;
  /// Null unless the status is CommandBufferStatusError.
  NS::Error* error() const;
  /// Seconds of the host's steady clock.
  NS::TimeInterval GPUStartTime() const;
  NS::TimeInterval GPUEndTime() const;
  Device* device() const;
};

/// Runs command buffers in the order of their places. Those of several queues of one device never run at the same time.
class CommandQueue : public Opaque<CommandQueue> {
public:
  using Opaque::Opaque;
  CommandBuffer* commandBuffer();
  void setLabel(const NS::String* label);
  Device* device() const;
};

}  // namespace vortex::metal::MTL
