#pragma once

#include "runtime/hal/driver.h"

namespace vortex::cpu {

struct Options {
  std::string name = "cpu";
  uint32_t threads = 0;      ///< 0: $VORTEX_NUM_THREADS, else every hardware thread this process may use
  uint64_t memoryBytes = 0;  ///< allocations beyond this sum fail; 0: the host's memory
  bool poison = false;       ///< new buffers and each block's scratch start as 0xff bytes: for checks, costs time
};

/// Kernels of target "cpu-<this architecture>…" run on a pool of threads; launches are complete when submit() returns.
/// Error: VORTEX_NUM_THREADS is not a number from 1 to 4096.
Result<hal::DeviceRef> createDevice(const Options& options = Options());
/// One device, created when first asked for.
std::unique_ptr<hal::Driver> createDriver(const Options& options = Options());

}  // namespace vortex::cpu
