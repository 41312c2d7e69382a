#include "tools/vortex/metal_model.h"

#include "artifact/print_text.h"
#include "artifact/validate.h"
#include "base/text.h"
#include "msl/loader.h"
#include "pipeline/module_compiler.h"
#include "runtime/cpu/cpu_driver.h"
#include "runtime/hal/host_memory.h"
#include "runtime/hal/host_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

namespace vortex::tools {

using artifact::DeviceReport;
using base::concat;
using base::Error;

namespace {

constexpr const char* kName = "metal3.1";
constexpr unsigned kSlotsBuffer = 29, kReportBuffer = 30;  // target/metal/writer.h
constexpr uint64_t kPrintWords = (1 << 20) / sizeof(uint64_t);

/// An entry point that was read back.
struct Entry {
  msl::Response read;
  std::shared_ptr<const artifact::Kernel> compiled;
  hal::KernelRef kernel;  ///< of the CPU
};

/// Reads entry points of printed kernels when launches first need them. Any thread.
class Entries {
public:
  static Result<std::shared_ptr<Entries>> create() {
    auto reader = msl::openReader();
    if (!reader)
      return reader.takeError();
    auto cpu = cpu::createDevice();
    if (!cpu)
      return cpu.takeError();
    auto stream = (*cpu)->createStream();
    if (!stream)
      return stream.takeError();
    return std::make_shared<Entries>(*reader, *std::move(cpu), *std::move(stream));
  }
  Entries(msl::ReadFunction read, hal::DeviceRef cpu, hal::StreamRef stream)
      : cpu(std::move(cpu)), stream(std::move(stream)), read_(read), compiler_("cpu", "native") {}

  Result<Entry*> find(const std::shared_ptr<const artifact::Kernel>& kernel, const std::string& symbol,
                      uint32_t threads, uint64_t sharedBytes) {
    const std::lock_guard lock(mutex_);
    auto [found, isNew] = entries_.try_emplace({kernel.get(), symbol, threads, sharedBytes});
    if (isNew) {
      kept_.push_back(kernel);
      if (Result<void> made = make(found->second, *kernel, symbol, threads, sharedBytes); !made) {
        entries_.erase(found);
        return made.takeError();
      }
    }
    return &found->second;
  }

  const hal::DeviceRef cpu;
  const hal::StreamRef stream;

private:
  Result<void> make(Entry& entry, const artifact::Kernel& kernel, const std::string& symbol, uint32_t threads,
                    uint64_t sharedBytes) {
    msl::Request request;
    request.file = kernel.name + ".metal";
    request.text.assign(kernel.code.begin(), kernel.code.end());
    request.kernel = symbol;
    request.block = {threads, 1, 1};
    request.threadgroupBytes[0] = std::max<uint64_t>(16, (sharedBytes + 15) / 16 * 16);
    read_(request, entry.read);
    if (!entry.read.problems.empty())
      return Error{concat("the printed Metal source of `", symbol, "` was not read: ", entry.read.problems[0].message)};
    pipeline::Failure failure;
    entry.compiled = compiler_.compile(entry.read.module, failure);
    if (!entry.compiled)
      return Error{concat("the printed Metal source of `", symbol, "` was not compiled: ", failure.message)};
    auto loaded = cpu->load(entry.compiled);
    if (!loaded)
      return loaded.takeError();
    entry.kernel = *std::move(loaded);
    return {};
  }

  std::mutex mutex_;
  msl::ReadFunction read_;
  pipeline::ModuleCompiler compiler_;
  std::map<std::tuple<const artifact::Kernel*, std::string, uint32_t, uint64_t>, Entry> entries_;
  std::vector<std::shared_ptr<const artifact::Kernel>> kept_;  ///< what the keys point to
};

/// Memory of the host that a launch gives an entry point.
struct Range {
  void* begin = nullptr;
  uint64_t bytes = 0;
};

/// From the first element to the last one of each tensor, in the order of the slots.
Result<std::vector<Range>> tensorsOf(const artifact::Kernel& kernel, const std::vector<uint64_t>& slots) {
  std::vector<const artifact::Param*> tensors;
  for (const auto* list : {&kernel.params, &kernel.results, &kernel.temporaries})
    for (const artifact::Param& param : *list)
      if (param.isTensor)
        tensors.push_back(&param);
  std::ranges::sort(tensors, {}, &artifact::Param::firstSlot);
  std::vector<Range> ranges;
  for (const artifact::Param* param : tensors) {
    const uint64_t* slot = slots.data() + param->firstSlot;
    uint64_t last = 0;
    bool isEmpty = slot[0] == 0;
    for (uint32_t dim = 0; dim < param->rank; ++dim) {
      auto extent = static_cast<int64_t>(slot[1 + dim]), stride = static_cast<int64_t>(slot[1 + param->rank + dim]);
      if (stride < 0 && extent > 1)
        return Error{concat("`", param->name, "` has a negative stride, which Metal buffers cannot express")};
      isEmpty |= extent == 0;
      last += isEmpty ? 0 : static_cast<uint64_t>((extent - 1) * stride);
    }
    ranges.push_back({reinterpret_cast<void*>(slot[0]), isEmpty ? 0 : (last + 1) * byteSize(param->type)});
  }
  return ranges;
}

class Stream : public hal::HostStream {
public:
  Stream(const hal::Device* device, std::shared_ptr<Entries> entries)
      : HostStream(device), entries_(std::move(entries)) {}

protected:
  Result<std::optional<artifact::Fault>> execute(const hal::Launch& launch) override {
    const artifact::Kernel& kernel = launch.kernel->artifact();
    auto tensors = tensorsOf(kernel, launch.slots);
    if (!tensors)
      return tensors.takeError();
    std::vector<uint64_t> slots = launch.slots;
    std::vector<uint64_t> area(sizeof(DeviceReport) / sizeof(uint64_t) + kPrintWords);
    auto* report = reinterpret_cast<DeviceReport*>(area.data());
    report->printCapacity = kPrintWords;
    tensors->resize(kReportBuffer + 1);
    (*tensors)[kSlotsBuffer] = {slots.data(), slots.size() * sizeof(uint64_t)};
    (*tensors)[kReportBuffer] = {area.data(), area.size() * sizeof(uint64_t)};
    for (const hal::LaunchPhase& phase : launch.phases) {
      if (Result<void> done = run(launch, phase, *tensors); !done)
        return done.takeError();
      if (report->fault == 0 || report->fault > kernel.faults.size())
        continue;
      artifact::Fault fault = kernel.faults[report->fault - 1];
      fault.message = artifact::faultText(kernel, fault, report->values);
      deliverPrints(launch, area);
      return std::optional(fault);
    }
    deliverPrints(launch, area);
    return std::optional<artifact::Fault>();
  }

private:
  Result<void> run(const hal::Launch& launch, const hal::LaunchPhase& phase, const std::vector<Range>& memory) {
    const auto& versions = phase.phase->versions;
    const std::string& symbol = phase.version < versions.size() ? versions[phase.version].symbol : phase.phase->symbol;
    auto kernel = std::shared_ptr<const artifact::Kernel>(launch.kernel, &launch.kernel->artifact());
    auto entry = entries_->find(kernel, symbol, phase.hardwareThreads, phase.sharedBytes);
    if (!entry)
      return entry.takeError();
    std::vector<hal::Argument> arguments;
    std::vector<const void*> addresses;
    const auto& params = (*entry)->compiled->params;
    uint64_t apart = uint64_t{1} << 40;
    for (const msl::BufferUse& use : (*entry)->read.buffers) {
      // What may share bytes was checked for the kernel as it was written; fields of structs lie between each other. So here every buffer gets
      // an address of its own, which only the check sees.
      const Range& range = memory[use.index];
      addresses.push_back(range.begin);
      auto buffer = entries_->cpu->wrap(reinterpret_cast<void*>(apart), range.bytes);
      apart += (range.bytes + 8191) / 4096 * 4096;
      if (!buffer)
        return buffer.takeError();
      arguments.push_back(hal::Tensor{
          *buffer, 0, params[arguments.size()].type, {static_cast<int64_t>(range.bytes / use.elemBytes)}, {}});
    }
    const uint64_t threads = phase.hardwareThreads;
    for (uint64_t extent :
         {phase.grid[0] * threads, uint64_t{phase.grid[1]}, uint64_t{phase.grid[2]}, threads, uint64_t{1}, uint64_t{1}})
      arguments.push_back(hal::Scalar{params[arguments.size()].type, extent});
    auto prepared = hal::prepare(*entries_->cpu, (*entry)->kernel, arguments);
    if (!prepared)
      return prepared.takeError();
    for (size_t i = 0; i < addresses.size(); ++i)
      prepared->slots[params[i].firstSlot] = reinterpret_cast<uint64_t>(addresses[i]);
    if (Result<void> submitted = entries_->stream->submit(*prepared); !submitted)
      return submitted;
    return entries_->stream->synchronize();
  }

  static void deliverPrints(const hal::Launch& launch, const std::vector<uint64_t>& area) {
    const auto& header = *reinterpret_cast<const DeviceReport*>(area.data());
    const uint64_t* words = area.data() + sizeof(DeviceReport) / sizeof(uint64_t);
    const auto& formats = launch.kernel->artifact().faults;
    for (uint64_t at = 0; launch.print && at < std::min<uint64_t>(header.printWords, kPrintWords);) {
      const uint64_t index = words[at] & UINT32_MAX, count = words[at] >> 32;
      if (index == 0 || index > formats.size() || at + count >= kPrintWords)
        break;
      launch.print(formats[index - 1], std::span<const uint64_t>(words + at + 1, count));
      at += 1 + count;
    }
  }

  std::shared_ptr<Entries> entries_;
};

class Kernel : public hal::LoadedKernel {
public:
  using LoadedKernel::LoadedKernel;
  Kernel(const hal::Device* device, std::shared_ptr<const artifact::Kernel> kernel)
      : LoadedKernel(device, std::move(kernel)) {}
};

class Device : public hal::Device {
public:
  Device() : memory_(hal::HostMemory::create({})) {
    info_.name = info_.target = kName;
    info_.product = "Metal source, read back and run on the CPU";
    info_.memoryBytes = memory_->limitBytes();
    info_.maxSharedBytes = 32 << 10;
    info_.maxBlockThreads = 1024;
    info_.hostMemory = true;
  }

  const hal::DeviceInfo& info() const override { return info_; }
  Result<uint64_t> availableBytes() const override { return memory_->availableBytes(); }
  Result<hal::BufferRef> allocate(uint64_t bytes) override { return memory_->allocate(this, bytes); }
  Result<hal::BufferRef> wrap(void* memory, uint64_t bytes, bool readOnly) override {
    return hal::HostMemory::wrap(this, memory, bytes, readOnly);
  }
  /// Opens the reader and the CPU: no earlier, since looking for other devices asks this one's name.
  Result<hal::StreamRef> createStream() override {
    const std::lock_guard lock(mutex_);
    if (!entries_) {
      auto entries = Entries::create();
      if (!entries)
        return entries.takeError();
      entries_ = *std::move(entries);
    }
    return hal::StreamRef(std::make_shared<Stream>(this, entries_));
  }
  Result<hal::EventRef> createEvent() override { return hal::EventRef(std::make_shared<hal::HostEvent>(this)); }
  Result<hal::KernelRef> load(std::shared_ptr<const artifact::Kernel> kernel) override {
    if (Result<void> valid = artifact::validate(*kernel); !valid)
      return valid.takeError();
    if (kernel->target != kName)
      return Error{concat("`", kernel->name, "` was made for ", kernel->target, ", not for ", kName)};
    return hal::KernelRef(std::make_shared<Kernel>(this, std::move(kernel)));
  }

private:
  std::mutex mutex_;
  std::shared_ptr<Entries> entries_;
  std::shared_ptr<hal::HostMemory> memory_;
  hal::DeviceInfo info_;
};

class Driver : public hal::Driver {
public:
  std::string_view name() const override { return kName; }
  Result<std::vector<hal::DeviceRef>> devices() override { return std::vector<hal::DeviceRef>{device_}; }

private:
  hal::DeviceRef device_ = std::make_shared<Device>();
};

}  // namespace

std::unique_ptr<hal::Driver> createMetalModel() { return std::make_unique<Driver>(); }

}  // namespace vortex::tools
