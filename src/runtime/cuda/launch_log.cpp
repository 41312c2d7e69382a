#include "runtime/cuda/launch_log.h"

#include "base/text.h"

#include <algorithm>
#include <cstring>

namespace vortex::cuda {

using artifact::DeviceReport;
using base::concat;

namespace {

/// The device wrote it; the compiler must not assume what it last saw.
template <typename T> T load(const T& value) { return *const_cast<const volatile T*>(&value); }

}  // namespace

hal::RunFault faultOf(const artifact::Kernel& kernel, const DeviceReport& report) {
  DeviceReport seen{};
  seen.fault = load(report.fault);
  std::ranges::transform(report.values, seen.values, [](const uint64_t& value) { return load(value); });
  return {kernel.name, artifact::reportedFault(kernel, seen)};
}

Result<std::unique_ptr<LaunchLog>> LaunchLog::create(StreamCoreRef stream, PinnedPool& pool) {
  Result<std::unique_ptr<PinnedMemory>> reports = pool.take(stream->context, kEntries * sizeof(DeviceReport));
  if (!reports)
    return reports.takeError();
  std::memset((*reports)->host(), 0, (*reports)->bytes());
  return std::unique_ptr<LaunchLog>(new LaunchLog(std::move(stream), pool, *std::move(reports)));
}

LaunchLog::~LaunchLog() {
  if (stream_->context->isLost())
    return;
  const Enter enter(*stream_->context);
  const bool isIdle = isEmpty() || waitUntilIdle(*stream_);
  pool_.giveBack(std::move(reports_), isIdle);
  for (Entry& entry : entries_)
    pool_.giveBack(std::move(entry.area), isIdle);
  for (std::unique_ptr<PinnedMemory>& area : freeAreas_)
    pool_.giveBack(std::move(area), isIdle);
  for (EventHandle event : halfDone_)
    if (event && !stream_->context->isLost())
      stream_->context->giveEvent(event);
}

DeviceReport* LaunchLog::report(uint64_t index) {
  const Entry& entry = entries_[index % kEntries];
  if (entry.area)
    return reinterpret_cast<DeviceReport*>(entry.area->host());
  return reinterpret_cast<DeviceReport*>(reports_->host()) + index % kEntries;
}

Result<void> LaunchLog::makeRoom(std::optional<hal::RunFault>& fault) {
  Context& context = *stream_->context;
  if (next_ != 0) {  // the half before this one is complete when its event is
    EventHandle& event = halfDone_[(next_ / kHalf - 1) % 2];
    if (!event) {
      Result<EventHandle> made = context.takeEvent();
      if (!made)
        return made.takeError();
      event = *made;
    }
    if (Result<void> recorded =
            context.check("cannot record an event", context.api().eventRecord(event, stream_->handle));
        !recorded)
      return recorded;
  }
  if (next_ - drained_ <= kHalf)
    return {};
  const EventHandle oldest = halfDone_[(next_ / kHalf) % 2];
  if (Result<void> done = context.check("waiting for earlier launches failed", context.api().eventSynchronize(oldest));
      !done)
    return done;
  drainTo(next_ - kHalf, fault);
  return {};
}

Result<DevicePointer> LaunchLog::add(const hal::Launch& launch, std::optional<hal::RunFault>& fault) {
  if (next_ % kHalf == 0)
    if (Result<void> room = makeRoom(fault); !room)
      return room.takeError();
  auto& kernel = static_cast<CudaKernel&>(*launch.kernel);
  Entry& entry = entries_[next_ % kEntries];
  if (kernel.mayPrint() && launch.print)
    if (Result<void> added = addPrintArea(entry, fault); !added)
      return added.takeError();
  if (entry.area)
    entry.print = launch.print;
  entry.kernel = launch.kernel;
  unsettled_ |= kernel.reports();
  DeviceReport* own = report(next_);
  const uint64_t area =
      entry.area ? entry.area->device() : reports_->device() + next_ % kEntries * sizeof(DeviceReport);
  *own = DeviceReport{};
  own->printCapacity = entry.area ? static_cast<uint32_t>(kPrintWords) : 0;
  ++next_;
  return area;
}

Result<void> LaunchLog::addPrintArea(Entry& entry, std::optional<hal::RunFault>& fault) {
  Context& context = *stream_->context;
  if (freeAreas_.empty() && areas_ == kPrintAreas) {
    if (Result<void> done =
            context.check("waiting for earlier launches failed", context.api().streamSynchronize(stream_->handle));
        !done)
      return done;
    drainTo(next_, fault);
  }
  if (freeAreas_.empty()) {
    Result<std::unique_ptr<PinnedMemory>> area =
        pool_.take(stream_->context, sizeof(DeviceReport) + kPrintWords * sizeof(uint64_t));
    if (!area)
      return area.takeError();
    std::memset((*area)->host(), 0, (*area)->bytes());
    freeAreas_.push_back(*std::move(area));
    ++areas_;
  }
  entry.area = std::move(freeAreas_.back());
  freeAreas_.pop_back();
  return {};
}

std::optional<hal::RunFault> LaunchLog::drain() {
  std::optional<hal::RunFault> fault;
  drainTo(next_, fault);
  unsettled_ = false;
  return fault;
}

void LaunchLog::drainTo(uint64_t end, std::optional<hal::RunFault>& fault) {
  for (; drained_ < end; ++drained_) {
    Entry& entry = entries_[drained_ % kEntries];
    if (load(report(drained_)->fault) != 0 && !fault)
      fault = faultOf(entry.kernel->artifact(), *report(drained_));
    if (entry.area)
      deliverPrints(entry);
    entry.kernel.reset();
  }
}

void LaunchLog::deliverPrints(Entry& entry) {
  const auto* header = reinterpret_cast<const DeviceReport*>(entry.area->host());
  auto* words = reinterpret_cast<uint64_t*>(entry.area->host() + sizeof(DeviceReport));
  const uint64_t reserved = load(header->printWords), end = std::min(reserved, kPrintWords);
  artifact::forEachPrint(entry.kernel->artifact(), {words, kPrintWords}, reserved, entry.print);
  std::memset(words, 0, end * sizeof(uint64_t));
  entry.print = nullptr;
  freeAreas_.push_back(std::move(entry.area));
}

/// Where the kernel is declared; an empty place in artifacts that do not say it.
static artifact::Fault declarationOf(const artifact::Kernel& kernel) {
  auto found = std::ranges::find(kernel.faults, artifact::kDeviceStopped, &artifact::Fault::id);
  return found == kernel.faults.end() ? artifact::Fault{} : *found;
}

hal::RunFault LaunchLog::blame(const std::string& reason, std::vector<const artifact::Kernel*> kernels) {
  for (uint64_t index = drained_; index < next_; ++index) {
    const artifact::Kernel& kernel = entries_[index % kEntries].kernel->artifact();
    if (load(report(index)->fault) != 0)
      return faultOf(kernel, *report(index));
    kernels.push_back(&kernel);
  }
  std::vector<std::string> names, places;
  for (const artifact::Kernel* kernel : kernels) {
    if (std::ranges::find(names, kernel->name) != names.end())
      continue;
    const artifact::Fault place = declarationOf(*kernel);
    names.push_back(kernel->name);
    places.push_back(place.file.empty() ? kernel->name : concat(kernel->name, " (", place.file, ":", place.line, ")"));
  }
  artifact::Fault fault = names.size() == 1 ? declarationOf(*kernels[0]) : artifact::Fault{};
  fault.id = artifact::kDeviceStopped;
  fault.message =
      concat("the device stopped: ", reason,
             "; the driver does not tell the access, `vortex run --check` finds it and names line and indices");
  if (names.size() > 1)
    fault.message += concat("; it ran ", base::join(places, ", "), " since the last synchronisation");
  return {names.empty()       ? "(another stream's)"
          : names.size() == 1 ? names[0]
                              : "one of " + std::to_string(names.size()),
          std::move(fault)};
}

}  // namespace vortex::cuda
