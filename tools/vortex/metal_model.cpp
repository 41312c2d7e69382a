#include "tools/vortex/metal_model.h"

#include "artifact/metal_interface.h"
#include "artifact/validate.h"
#include "base/text.h"
#include "pipeline/module_compiler.h"
#include "runtime/cpu/cpu_driver.h"
#include "runtime/hal/host_device.h"
#include "session/metal_read.h"

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
constexpr uint64_t kPrintWords = (1 << 20) / sizeof(uint64_t);

/// An entry point that was read back.
struct Entry {
  msl::Response read;
  std::shared_ptr<const artifact::Kernel> compiled;
  hal::KernelRef kernel;  ///< of the CPU
};

/// A printed file with one of its entry points: reading others takes time and tells nothing of this one.
std::string entryAlone(const std::string& text, const std::string& symbol) {
  const std::string begins = "\nkernel void ";
  const size_t first = text.find(begins), at = text.find(concat(begins, symbol, "("));
  if (at == std::string::npos)
    return text;
  return text.substr(0, first) + text.substr(at, text.find(begins, at + 1) - at);
}

/// Reads entry points of printed kernels when launches first need them. Any thread.
class Entries {
public:
  static Result<std::shared_ptr<Entries>> create() {
    auto cpu = cpu::createDevice();
    if (!cpu)
      return cpu.takeError();
    auto stream = (*cpu)->createStream();
    if (!stream)
      return stream.takeError();
    return std::make_shared<Entries>(*std::move(cpu), *std::move(stream));
  }
  Entries(hal::DeviceRef cpu, hal::StreamRef stream)
      : cpu(std::move(cpu)), stream(std::move(stream)), compiler_("cpu", "native", true, pipeline::Effort::Quick) {}

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
    request.text = entryAlone({kernel.code.begin(), kernel.code.end()}, symbol);
    request.kernel = symbol;
    request.block = {threads, 1, 1};
    request.isWhole = true;
    request.threadgroupBytes[0] = std::max<uint64_t>(16, (sharedBytes + 15) / 16 * 16);
    auto read = session::readMetal(request, true);
    if (!read)
      return read.takeError();
    entry.read = *std::move(read);
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
  pipeline::ModuleCompiler compiler_;
  std::map<std::tuple<const artifact::Kernel*, std::string, uint32_t, uint64_t>, Entry> entries_;
  std::vector<std::shared_ptr<const artifact::Kernel>> kept_;  ///< what the keys point to
};

/// Memory of the host that a launch gives an entry point.
struct Range {
  void* begin = nullptr;
  uint64_t bytes = 0;
};

const artifact::Param* tensorAt(const artifact::Kernel& kernel, uint32_t firstSlot) {
  for (const auto* list : {&kernel.params, &kernel.results, &kernel.temporaries})
    if (auto found = std::ranges::find(*list, firstSlot, &artifact::Param::firstSlot); found != list->end())
      return &*found;
  return nullptr;
}

/// From the first element to the last one of each tensor that a phase takes.
Result<std::vector<Range>> tensorsOf(const artifact::Kernel& kernel, const artifact::Phase& phase,
                                     const std::vector<uint64_t>& slots) {
  std::vector<Range> ranges;
  for (uint32_t first : artifact::metalTensors(kernel, phase.symbol)) {
    const artifact::Param* param = tensorAt(kernel, first);
    if (!param)
      return Error{concat("`", phase.symbol, "` takes a tensor that `", kernel.name, "` has not")};
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
    constexpr size_t kReportWords = sizeof(DeviceReport) / sizeof(uint64_t);
    const bool prints = launch.print && artifact::mayPrint(kernel);
    std::vector<uint64_t> area(kReportWords + (prints ? kPrintWords : 0));
    auto* report = reinterpret_cast<DeviceReport*>(area.data());
    report->printCapacity = area.size() - kReportWords;
    for (const hal::LaunchPhase& phase : launch.phases) {
      std::vector<uint64_t> slots = launch.slotsOf(phase);
      auto memory = tensorsOf(kernel, *phase.phase, slots);
      if (!memory)
        return memory.takeError();
      memory->resize(artifact::kMetalReportBuffer + 1);
      (*memory)[artifact::kMetalSlotsBuffer] = {slots.data(), slots.size() * sizeof(uint64_t)};
      (*memory)[artifact::kMetalReportBuffer] = {area.data(), area.size() * sizeof(uint64_t)};
      if (Result<void> done = run(launch, phase, *memory); !done)
        return done.takeError();
      if (report->fault != 0)
        break;
    }
    if (prints)
      artifact::forEachPrint(kernel, std::span(area).subspan(kReportWords), report->printWords, launch.print);
    return report->fault == 0 ? std::optional<artifact::Fault>() : artifact::reportedFault(kernel, *report);
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

  std::shared_ptr<Entries> entries_;
};

class Kernel : public hal::LoadedKernel {
public:
  using LoadedKernel::LoadedKernel;
  Kernel(const hal::Device* device, std::shared_ptr<const artifact::Kernel> kernel)
      : LoadedKernel(device, std::move(kernel)) {}
};

class Device : public hal::HostDevice {
public:
  Device() : HostDevice({}) {
    info_.name = info_.target = kName;
    info_.product = "Metal source, read back and run on the CPU";
    info_.maxSharedBytes = 32 << 10;
    info_.maxBlockThreads = 1024;
  }

  /// Opens the CPU: no earlier, since looking for other devices asks this one's name.
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
  Result<hal::KernelRef> load(std::shared_ptr<const artifact::Kernel> kernel,
                              std::shared_ptr<artifact::EntrySource>) override {
    if (Result<void> valid = artifact::validate(*kernel); !valid)
      return valid.takeError();
    if (kernel->target != kName)
      return Error{concat("`", kernel->name, "` was made for ", kernel->target, ", not for ", kName)};
    return hal::KernelRef(std::make_shared<Kernel>(this, std::move(kernel)));
  }

private:
  std::mutex mutex_;
  std::shared_ptr<Entries> entries_;
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
