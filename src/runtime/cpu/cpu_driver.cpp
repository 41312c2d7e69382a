#include "runtime/cpu/cpu_driver.h"

#include "base/text.h"
#include "chip/chip.h"
#include "runtime/cpu/cpu_kernel.h"
#include "runtime/hal/host_device.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace vortex::cpu {

using base::concat;

namespace {

/// What streams need; shared, because a stream may outlive its device.
struct Resources {
  Workers workers;
  std::shared_ptr<hal::HostMemory> memory;
  bool poison;
};

class CpuStream : public hal::HostStream {
public:
  CpuStream(const hal::Device* device, std::shared_ptr<Resources> resources)
      : HostStream(device), resources_(std::move(resources)) {}

protected:
  Result<std::optional<artifact::Fault>> execute(const hal::Launch& launch) override {
    const auto& kernel = static_cast<const CpuKernel&>(*launch.kernel);
    Result<hal::BufferRef> scratch = allocateScratch(launch);
    if (!scratch)
      return scratch.takeError();
    for (const hal::LaunchPhase& phase : launch.phases) {
      const auto index = static_cast<size_t>(phase.phase - kernel.artifact().phases.data());
      BlockRun run(launch, phase, kernel.entry(index), scratchOf(phase, *scratch), kernel.order(index));
      const Result<uint32_t> code = phase.phase->isCooperative
                                        ? run.runTogether()
                                        : Result<uint32_t>(run.run(resources_->workers, kernel.history(index)));
      if (!code)
        return hal::launchError(kernel.artifact(), code.error());
      if (*code != 0)
        return std::optional(faultOf(kernel.artifact(), *code, run.faultText()));
    }
    return std::optional<artifact::Fault>();
  }

  void forEachChunk(uint64_t bytes, const ByteRange& work) override {
    // Half a megabyte is 30 µs at 16 GB/s: enough to pay for a thread's wake-up.
    constexpr uint64_t kGrainBytes = uint64_t{1} << 19;
    resources_->workers.forEach(0, bytes, kGrainBytes,
                                [&](uint64_t begin, uint64_t end, uint32_t) { work(begin, end); });
  }

private:
  static uint64_t roundToLine(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

  BlockRun::Scratch scratchOf(const hal::LaunchPhase& phase, const hal::BufferRef& scratch) const {
    if (phase.scratchBytes == 0)
      return {};
    return {static_cast<uint8_t*>(scratch->host()), roundToLine(phase.scratchBytes), resources_->poison};
  }

  /// For all workers, or the blocks that run together, and the neediest phase, before any block runs. One allocation per launch: two launches at the same time
  /// never share, and HostMemory reuses the storage.
  Result<hal::BufferRef> allocateScratch(const hal::Launch& launch) {
    uint64_t bytes = 0;
    uint32_t workers = resources_->workers.count();
    const hal::LaunchPhase* neediest = nullptr;
    for (const hal::LaunchPhase& phase : launch.phases) {
      if (phase.scratchBytes > bytes) {
        bytes = phase.scratchBytes;
        neediest = &phase;
      }
      if (phase.phase->isCooperative)
        workers = std::max(workers, static_cast<uint32_t>(phase.blocks));
    }
    if (bytes == 0)
      return hal::BufferRef();
    uint64_t total = 0;
    const bool overflow =
        bytes > UINT64_MAX - 63 || __builtin_mul_overflow(roundToLine(bytes), uint64_t{workers}, &total);
    Result<hal::BufferRef> scratch =
        overflow ? Error{"more than 2^64 bytes"} : resources_->memory->allocate(nullptr, total);
    if (!scratch)
      return hal::launchError(launch.kernel->artifact(),
                              scratch.error().after(concat("phase '", neediest->phase->name, "' needs ", bytes,
                                                           " bytes of scratch for each of ", workers, " workers: ")));
    return scratch;
  }

  static artifact::Fault faultOf(const artifact::Kernel& kernel, uint32_t code, const std::string& text) {
    if (code <= kernel.faults.size()) {
      artifact::Fault fault = kernel.faults[code - 1];
      if (!text.empty())
        fault.message = text;
      return fault;
    }
    return {"", concat("the code returned ", code, ", but it has ", kernel.faults.size(), " faults"), "", 0, 0};
  }

  std::shared_ptr<Resources> resources_;
};

class CpuDevice : public hal::HostDevice {
public:
  CpuDevice(const Options& options, uint32_t threads, const chip::Host& host)
      : HostDevice(memoryOptions(options, host)), resources_(new Resources{Workers(threads), memory_, options.poison}) {
    info_.name = options.name;
    info_.product = host.name;
    info_.target = "cpu";
    info_.model = host.model;
    info_.workers = threads;
  }

  Result<hal::StreamRef> createStream() override {
    return hal::StreamRef(std::make_shared<CpuStream>(this, resources_));
  }
  Result<hal::KernelRef> load(std::shared_ptr<const artifact::Kernel> kernel,
                              std::shared_ptr<artifact::EntrySource>) override {
    return CpuKernel::load(this, std::move(kernel));
  }

private:
  static hal::HostMemory::Options memoryOptions(const Options& options, const chip::Host& host) {
    const uint64_t bytes = options.memoryBytes ? options.memoryBytes : host.memoryBytes;
    return {.limitBytes = bytes, .keepBytes = bytes / 8, .poison = options.poison};
  }

  std::shared_ptr<Resources> resources_;
};

constexpr uint32_t kMaxThreads = 4096;

Result<uint32_t> threadCount(const Options& options, const chip::Host& host) {
  if (options.threads != 0)
    return std::min(options.threads, kMaxThreads);
  const char* text = std::getenv("VORTEX_NUM_THREADS");
  if (!text || !*text)
    return host.threads;
  uint32_t threads = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, threads);
  if (error != std::errc() || stop != end || threads == 0 || threads > kMaxThreads)
    return Error{concat("VORTEX_NUM_THREADS is '", text, "'; it must be a number from 1 to ", kMaxThreads)};
  return threads;
}

class CpuDriver : public hal::Driver {
public:
  explicit CpuDriver(Options options) : options_(std::move(options)) {}
  std::string_view name() const override { return "cpu"; }
  Result<std::vector<hal::DeviceRef>> devices() override {
    const std::lock_guard lock(mutex_);
    if (!device_) {
      Result<hal::DeviceRef> created = createDevice(options_);
      if (!created)
        return created.takeError();
      device_ = *std::move(created);
    }
    return std::vector<hal::DeviceRef>{device_};
  }

private:
  Options options_;
  std::mutex mutex_;
  hal::DeviceRef device_;
};

}  // namespace

Result<hal::DeviceRef> createDevice(const Options& options) {
  const chip::Host host = chip::detectHost();
  const Result<uint32_t> threads = threadCount(options, host);
  if (!threads)
    return threads.error();
  return hal::DeviceRef(std::make_shared<CpuDevice>(options, *threads, host));
}

std::unique_ptr<hal::Driver> createDriver(const Options& options) { return std::make_unique<CpuDriver>(options); }

}  // namespace vortex::cpu
