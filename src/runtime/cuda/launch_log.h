// The launches of a stream whose end has not been seen yet: what they reported, and what keeps their code loaded.
//
// A kernel writes its report (first fault, prints) into page-locked host memory, so reading it back costs nothing: a launch takes an entry
// of a ring and resets 96 bytes, and only synchronisation looks at them. When the ring is full the older half is waited for.
#pragma once

#include "artifact/device_report.h"
#include "runtime/cuda/kernel.h"
#include "runtime/cuda/memory.h"
#include "runtime/hal/launch.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace vortex::cuda {

/// What a kernel has reported, whose `fault` is not 0.
hal::RunFault faultOf(const artifact::Kernel& kernel, const artifact::DeviceReport& report);

/// Used under its stream's lock.
class LaunchLog {
public:
  static Result<std::unique_ptr<LaunchLog>> create(StreamCoreRef stream, PinnedPool& pool);
  /// Waits for launches that were not drained.
  ~LaunchLog();

  /// Takes an entry for a launch that follows at once; the result is the report's address for the kernel. May find a fault of older launches.
  Result<DevicePointer> add(const hal::Launch& launch, std::optional<hal::RunFault>& fault);
  /// All launches are complete: delivers their prints, forgets them, and returns the first fault.
  std::optional<hal::RunFault> drain();
  /// Whether a launch since the last drain can have left something in its report.
  bool isUnsettled() const { return unsettled_; }
  bool isEmpty() const { return drained_ == next_; }
  /// For a context that was lost: the fault a kernel reported before, else one that names the kernels that may have caused it.
  /// `names`: of other kernels that may have.
  hal::RunFault blame(const std::string& reason, std::vector<const artifact::Kernel*> kernels);

private:
  static constexpr uint64_t kEntries = 256, kHalf = kEntries / 2;
  static constexpr uint64_t kPrintWords = uint64_t{1} << 17;
  static constexpr size_t kPrintAreas = 4;

  struct Entry {
    hal::KernelRef kernel;
    hal::PrintSink print;
    std::unique_ptr<PinnedMemory> area;  ///< report with print area; null: the report is in reports_
  };

  LaunchLog(StreamCoreRef stream, PinnedPool& pool, std::unique_ptr<PinnedMemory> reports)
      : stream_(std::move(stream)), pool_(pool), reports_(std::move(reports)) {}
  artifact::DeviceReport* report(uint64_t index);
  Result<void> makeRoom(std::optional<hal::RunFault>& fault);
  Result<void> addPrintArea(Entry& entry, std::optional<hal::RunFault>& fault);
  void drainTo(uint64_t end, std::optional<hal::RunFault>& fault);
  void deliverPrints(Entry& entry);

  StreamCoreRef stream_;
  PinnedPool& pool_;
  std::unique_ptr<PinnedMemory> reports_;
  std::array<Entry, kEntries> entries_;
  std::array<EventHandle, 2> halfDone_{};  ///< recorded behind the last launch of each half
  std::vector<std::unique_ptr<PinnedMemory>> freeAreas_;
  size_t areas_ = 0;
  uint64_t next_ = 0, drained_ = 0;  ///< launches ever added and looked at; an entry is its number modulo kEntries
  bool unsettled_ = false;
};

}  // namespace vortex::cuda
