#pragma once

#include "runtime/cuda/context.h"

#include <map>

namespace vortex::cuda {

/// How many clusters of a device run at the same time; the driver is asked once per size. Threads: all members.
class ClusterCount {
public:
  explicit ClusterCount(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  /// hal::Device::residentClusters
  Result<uint32_t> of(uint32_t blocks);

private:
  Result<uint32_t> ask(uint32_t blocks);

  std::shared_ptr<Gpu> gpu_;
  std::mutex mutex_;
  std::map<uint32_t, uint32_t> known_;
};

}  // namespace vortex::cuda
