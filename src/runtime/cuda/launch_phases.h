// The phases of a prepared launch as calls of the driver.
#pragma once

#include "runtime/cuda/kernel.h"
#include "runtime/hal/launch.h"

namespace vortex::cuda {

/// Loads the entry points that the launch needs, with the context current. Error, before anything has run: what the driver refuses, or
/// resources the device does not have, with the numbers.
Result<void> checkPhases(const Gpu& gpu, const ContextRef& context, const hal::Launch& launch);

/// Of a cooperative phase, with the context current. Error: the device runs fewer blocks at the same time, with both numbers.
Result<void> checkResident(const Gpu& gpu, const ContextRef& context, const hal::Launch& launch,
                           const hal::LaunchPhase& phase);

/// Queues the phases behind the stream's work; checkPhases was fine. `report`: the device's address of the launch's report.
Result<void> startPhases(const ContextRef& context, StreamHandle stream, const hal::Launch& launch,
                         DevicePointer report);

/// "cannot launch kernel 'k': reason"
Error launchError(const hal::Launch& launch, const Error& reason);
inline Error launchError(const hal::Launch& launch, std::string reason) {
  return launchError(launch, Error{std::move(reason)});
}

}  // namespace vortex::cuda
