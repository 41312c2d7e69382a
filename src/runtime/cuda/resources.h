#pragma once

#include "artifact/cache.h"
#include "runtime/cuda/memory.h"

#include <memory>

namespace vortex::cuda {

/// What a device and its streams share; streams and buffers may outlive the device.
struct Resources {
  std::shared_ptr<Gpu> gpu;
  std::shared_ptr<Accounting> accounting;
  std::shared_ptr<artifact::Cache> cache;  ///< null: machine code is not kept
  PinnedPool pinned;
};

}  // namespace vortex::cuda
