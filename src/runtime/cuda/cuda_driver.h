#pragma once

#include "runtime/hal/driver.h"

namespace vortex::cuda {

struct Options {
  uint64_t memoryBytes = 0;      ///< allocations of a device beyond this sum fail; 0: the device's memory
  std::string cacheDirectory{};  ///< where assembled kernels are kept; empty: artifact::Cache::defaultDirectory()
  bool useCache = true;
};

/// One device per GPU that the NVIDIA driver shows, "cuda:0", "cuda:1", …: kernels of targets "sm_…" whose code is PTX. The driver's library is
/// opened when devices are first asked for; a machine without it, or without a GPU, has none.
std::unique_ptr<hal::Driver> createDriver(const Options& options = Options());

}  // namespace vortex::cuda
