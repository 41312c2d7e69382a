#include "runtime/null/null_driver.h"

#include "artifact/validate.h"

#include <algorithm>
#include <mutex>

namespace vortex::null_device {

namespace {

/// Shared by the device and its streams, which may outlive it.
class Recorder {
public:
  explicit Recorder(bool enabled) : enabled_(enabled) {}

  void add(const hal::Launch& launch) {
    if (!enabled_)
      return;
    const std::lock_guard lock(mutex_);
    for (const hal::LaunchPhase& phase : launch.phases) {
      Record record{launch.kernel->artifact().name, phase.phase->name, {}, {}, phase.scratchBytes, phase.sharedBytes,
                    launch.slotsOf(phase)};
      std::copy_n(phase.grid, 3, record.grid);
      std::copy_n(phase.block, 3, record.block);
      records_.push_back(std::move(record));
    }
  }
  std::vector<Record> records() const {
    const std::lock_guard lock(mutex_);
    return records_;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    records_.clear();
  }

private:
  const bool enabled_;
  mutable std::mutex mutex_;
  std::vector<Record> records_;
};

class NullStream : public hal::HostStream {
public:
  NullStream(const hal::Device* device, std::shared_ptr<Recorder> recorder)
      : HostStream(device), recorder_(std::move(recorder)) {}

protected:
  Result<std::optional<artifact::Fault>> execute(const hal::Launch& launch) override {
    recorder_->add(launch);
    return std::optional<artifact::Fault>();
  }

private:
  std::shared_ptr<Recorder> recorder_;
};

class NullKernel : public hal::LoadedKernel {
public:
  using LoadedKernel::LoadedKernel;
  NullKernel(const hal::Device* device, std::shared_ptr<const artifact::Kernel> kernel)
      : LoadedKernel(device, std::move(kernel)) {}
};

class Device : public NullDevice {
public:
  explicit Device(const Options& options)
      : NullDevice({.limitBytes = options.memoryBytes}), recorder_(std::make_shared<Recorder>(options.keepRecords)) {
    info_.name = options.name;
    info_.product = "checks launches, executes nothing";
    info_.maxSharedBytes = options.maxSharedBytes;
    info_.maxBlockThreads = options.maxBlockThreads;
    info_.executes = false;
  }

  Result<hal::StreamRef> createStream() override {
    return hal::StreamRef(std::make_shared<NullStream>(this, recorder_));
  }
  Result<hal::KernelRef> load(std::shared_ptr<const artifact::Kernel> kernel,
                              std::shared_ptr<artifact::EntrySource>) override {
    if (Result<void> valid = artifact::validate(*kernel); !valid)
      return valid.takeError();
    return hal::KernelRef(std::make_shared<NullKernel>(this, std::move(kernel)));
  }
  std::vector<Record> records() const override { return recorder_->records(); }
  void clearRecords() override { recorder_->clear(); }

private:
  std::shared_ptr<Recorder> recorder_;
};

class NullDriver : public hal::Driver {
public:
  explicit NullDriver(const Options& options) : device_(createDevice(options)) {}
  std::string_view name() const override { return "null"; }
  Result<std::vector<hal::DeviceRef>> devices() override { return std::vector<hal::DeviceRef>{device_}; }

private:
  hal::DeviceRef device_;
};

}  // namespace

std::shared_ptr<NullDevice> createDevice(const Options& options) { return std::make_shared<Device>(options); }
std::unique_ptr<hal::Driver> createDriver(const Options& options) { return std::make_unique<NullDriver>(options); }

}  // namespace vortex::null_device
