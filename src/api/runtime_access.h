// What this folder and the driver need beyond the public runtime API: the objects behind the handles, and kernels that never
// were a file.
#pragma once

#include "runtime/hal/launch.h"
#include "vortex/runtime.h"

namespace vortex {

struct RuntimeAccess {
  static const hal::DeviceRef& device(const Device& device) { return device.device_; }
  static const hal::KernelRef& kernel(const Kernel& kernel) { return kernel.kernel_; }
  static const hal::StreamRef& stream(const Stream& stream) { return stream.stream_; }
  static const hal::DeviceRef& deviceOf(const Stream& stream) { return stream.device_; }
  static const hal::EventRef& event(const Event& event) { return event.event_; }
  static const hal::GraphRef& graph(const Graph& graph) { return graph.graph_; }
  static const hal::BufferRef& buffer(const Buffer& buffer) { return buffer.buffer_; }
  static Device wrap(hal::DeviceRef device) { return Device(std::move(device)); }
  static Kernel wrap(hal::KernelRef kernel) { return Kernel(std::move(kernel)); }
  static Stream wrap(hal::DeviceRef device, hal::StreamRef stream) {
    return Stream(std::move(device), std::move(stream));
  }
  static Graph wrap(hal::DeviceRef device, hal::GraphRef graph) { return Graph(std::move(device), std::move(graph)); }
  static PreparedLaunch wrap(std::shared_ptr<const hal::Launch> launch) { return PreparedLaunch(std::move(launch)); }
  static const hal::Launch& launch(const PreparedLaunch& launch) { return *launch.launch_; }
  static Event wrap(hal::EventRef event) { return Event(std::move(event)); }
  static Buffer wrap(hal::BufferRef buffer) { return Buffer(std::move(buffer)); }

  /// Error: an element type that there is not.
  static Result<hal::Tensor> toHal(const Tensor& tensor);
  static Tensor fromHal(const hal::Tensor& tensor);
  /// The argument as the parameter wants it. Error: a number that does not fit; names the parameter.
  static Result<hal::Argument> toHal(const Argument& argument, const artifact::Param& param);
  /// Loads a kernel that was just compiled.
  static Result<Kernel> load(const Device& device, std::shared_ptr<const artifact::Kernel> kernel,
                             std::shared_ptr<artifact::EntrySource> entries = nullptr);
};

/// Callers can pass any number.
inline bool isKnown(DType type) { return type <= DType::F64; }
inline artifact::ScalarType toArtifact(DType type) { return static_cast<artifact::ScalarType>(type); }
inline DType fromArtifact(artifact::ScalarType type) { return static_cast<DType>(type); }
static_assert(static_cast<int>(DType::F64) == static_cast<int>(artifact::ScalarType::F64) &&
              static_cast<int>(DType::I8) == static_cast<int>(artifact::ScalarType::I8) &&
              static_cast<int>(DType::F16) == static_cast<int>(artifact::ScalarType::F16));

}  // namespace vortex
