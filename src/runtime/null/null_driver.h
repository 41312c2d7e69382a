// A device that checks and records launches but executes none: for tests of everything above drivers, and for measuring the
// cost of a launch without the kernel. Memory is the host's, so copies and fills work.
#pragma once

#include "runtime/hal/driver.h"
#include "runtime/hal/host_device.h"

namespace vortex::null_device {

/// One phase of a submitted launch.
struct Record {
  std::string kernel;
  std::string phase;
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t scratchBytes;
  uint64_t sharedBytes;
  std::vector<uint64_t> slots;
};

struct Options {
  std::string name = "null";
  uint64_t memoryBytes = 0;      ///< allocations beyond this sum fail; 0: the host's memory
  uint64_t maxSharedBytes = 0;   ///< as in DeviceInfo
  uint32_t maxBlockThreads = 0;  ///< as in DeviceInfo
  bool keepRecords = true;       ///< false: records() stays empty, for long runs
};

/// A hal::Device that also shows what was launched, oldest first. Accepts kernels of every target.
class NullDevice : public hal::HostDevice {
public:
  using HostDevice::HostDevice;
  virtual std::vector<Record> records() const = 0;
  virtual void clearRecords() = 0;
};

std::shared_ptr<NullDevice> createDevice(const Options& options = Options());
std::unique_ptr<hal::Driver> createDriver(const Options& options = Options());

}  // namespace vortex::null_device
