#include "runtime/cuda/cuda_driver.h"

#include "base/text.h"
#include "runtime/cuda/cluster_count.h"
#include "runtime/cuda/stream.h"

#include <mutex>

namespace vortex::cuda {

using base::concat;

namespace {

class CudaDevice : public hal::Device {
public:
  CudaDevice(std::shared_ptr<Gpu> gpu, const Options& options)
      : resources_(std::make_shared<Resources>()), clusters_(gpu) {
    const GpuFacts& facts = gpu->facts();
    info_.name = concat("cuda:", gpu->index());
    info_.product = facts.product;
    info_.target = concat("sm_", facts.capability);
    info_.memoryBytes = options.memoryBytes ? std::min(options.memoryBytes, facts.memoryBytes) : facts.memoryBytes;
    info_.workers = static_cast<uint32_t>(facts.multiprocessors);
    info_.maxSharedBytes = static_cast<uint64_t>(facts.sharedOptInBytes);
    info_.maxBlockThreads = static_cast<uint32_t>(facts.maxThreadsPerBlock);
    for (int axis = 0; axis < 3; ++axis)
      info_.maxGrid[axis] = static_cast<uint32_t>(facts.maxGrid[axis]);
    resources_->accounting = std::make_shared<Accounting>(info_.memoryBytes);
    resources_->gpu = std::move(gpu);
    if (options.useCache)
      resources_->cache =
          std::make_shared<artifact::Cache>(artifact::Cache::Options{.directory = options.cacheDirectory});
  }

  const hal::DeviceInfo& info() const override { return info_; }
  Result<uint64_t> availableBytes() const override {
    return cuda::availableBytes(*resources_->gpu, *resources_->accounting);
  }
  Result<hal::BufferRef> allocate(uint64_t bytes) override {
    return cuda::allocate(this, *resources_->gpu, resources_->accounting, bytes);
  }
  Result<hal::BufferRef> wrap(void*, uint64_t bytes, bool) override {
    return Error{concat("device '", info_.name, "' cannot work in ", bytes, " bytes of host memory; upload a copy")};
  }
  Result<hal::BufferRef> wrapDevice(uint64_t address, uint64_t bytes, std::shared_ptr<void> owner,
                                    bool readOnly) override {
    return cuda::wrapDevice(this, *resources_->gpu, address, bytes, std::move(owner), readOnly);
  }
  Result<hal::StreamRef> createStream() override { return CudaStream::create(this, resources_); }
  Result<hal::StreamRef> wrapStream(uint64_t handle) override {
    return CudaStream::create(this, resources_, reinterpret_cast<StreamHandle>(handle));
  }
  Result<hal::EventRef> createEvent() override {
    return hal::EventRef(std::make_shared<CudaEvent>(this, resources_->gpu));
  }
  Result<uint32_t> residentClusters(uint32_t blocks) override { return clusters_.of(blocks); }
  Result<hal::KernelRef> load(std::shared_ptr<const artifact::Kernel> kernel,
                              std::shared_ptr<artifact::EntrySource> entries) override {
    return CudaKernel::load(this, *resources_, std::move(kernel), std::move(entries));
  }

private:
  std::shared_ptr<Resources> resources_;
  ClusterCount clusters_;
  hal::DeviceInfo info_;
};

class CudaDriver : public hal::Driver {
public:
  explicit CudaDriver(Options options) : options_(std::move(options)) {}
  std::string_view name() const override { return "cuda"; }

  Result<std::vector<hal::DeviceRef>> devices() override {
    const std::lock_guard lock(mutex_);
    if (!searched_) {
      search_ = openApi();
      searched_ = true;
    }
    if (search_.broken)
      return *search_.broken;
    if (search_.api && devices_.empty())
      if (Result<void> found = findDevices(); !found)
        return found.takeError();
    return devices_;
  }

  std::string absence() const override {
    const std::lock_guard lock(mutex_);
    return search_.absence;
  }

private:
  Result<void> findDevices() {
    int count = 0;
    if (const Code code = search_.api->deviceCount(&count); code != kSuccess)
      return search_.api->error("cannot count the NVIDIA GPUs", code);
    for (int index = 0; index < count; ++index) {
      Result<std::shared_ptr<Gpu>> gpu = Gpu::open(search_.api, index);
      if (!gpu)
        return gpu.takeError();
      devices_.push_back(std::make_shared<CudaDevice>(*std::move(gpu), options_));
    }
    if (count == 0)
      search_.absence = "the NVIDIA driver shows no GPU";
    return {};
  }

  Options options_;
  mutable std::mutex mutex_;
  bool searched_ = false;
  ApiSearch search_;
  std::vector<hal::DeviceRef> devices_;
};

}  // namespace

std::unique_ptr<hal::Driver> createDriver(const Options& options) { return std::make_unique<CudaDriver>(options); }

}  // namespace vortex::cuda
