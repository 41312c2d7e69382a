#pragma once

#include "artifact/cache.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/ptx_parts.h"
#include "runtime/cuda/resources.h"
#include "runtime/hal/device.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace vortex::cuda {

/// An entry point in one context.
struct LoadedEntry {
  FunctionHandle function = nullptr;
  uint32_t maxThreads = 0;  ///< of a block, as its registers allow
  uint32_t staticSharedBytes = 0;
  mutable std::atomic<uint32_t> dynamicSharedBytes{0};  ///< allowed so far
};

/// The entry points of a kernel in one context, as far as launches needed them. They live as long as the kernel.
class Placement {
public:
  Placement(ContextRef context, size_t entries) : context_(std::move(context)), entries_(entries) {}
  ~Placement();
  const ContextRef& context() const { return context_; }
  /// Null if no launch has needed it.
  const LoadedEntry* entry(size_t index) const { return entries_[index].load(std::memory_order_acquire); }
  /// `entry` stays; the caller holds the lock of its part.
  const LoadedEntry* add(size_t index, std::unique_ptr<LoadedEntry> entry);
  /// Remembers a module, to unload it in the end.
  void own(ModuleHandle module);

private:
  ContextRef context_;
  std::vector<std::atomic<const LoadedEntry*>> entries_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<LoadedEntry>> owned_;
  std::vector<ModuleHandle> modules_;
};

class CudaKernel : public hal::LoadedKernel {
public:
  /// A kernel with one entry point is assembled at once, one with several by the launches that need them. Errors: another target, PTX that
  /// is newer than the driver or that it refuses (with its log), a missing entry point, more parameters than a launch can carry, a phase
  /// without hardware threads.
  static Result<hal::KernelRef> load(const hal::Device* device, const Resources& resources,
                                     std::shared_ptr<const artifact::Kernel> kernel,
                                     std::shared_ptr<artifact::EntrySource> entries);

  /// The entry point of a phase's version (hal::LaunchPhase::version) in a context that is current; assembled and loaded if this is its first
  /// use there. Error: what the driver refuses, with its log, the kernel and the entry point.
  Result<const LoadedEntry*> entryIn(const ContextRef& context, const artifact::Phase& phase, uint32_t version);

  /// Encodes the tensor maps of the launch's phases. Error: a driver that cannot, or that refuses one.
  Result<void> bind(hal::Launch& launch) override;

  Result<void> provide(const artifact::Phase& phase, uint32_t version) override;

  bool mayPrint() const { return mayPrint_; }
  /// Whether a launch can leave something in its report.
  bool reports() const { return reports_; }

private:
  /// What is assembled together, and its machine code once it is there.
  struct Part {
    std::mutex mutex;
    std::vector<uint8_t> machineCode;
    std::vector<std::pair<ContextRef, ModuleHandle>> modules;
  };

  CudaKernel(const hal::Device* device, const Resources& resources, std::shared_ptr<const artifact::Kernel> kernel,
             std::shared_ptr<artifact::EntrySource> entries);
  Result<void> listEntries();
  size_t numberOf(const artifact::Phase& phase, uint32_t version) const;
  Result<std::string> textOfPart(size_t part);
  Placement& placementIn(const ContextRef& context);
  Result<const LoadedEntry*> place(Placement& placement, size_t entry);
  Result<ModuleHandle> moduleOf(Placement& placement, size_t index);
  Result<ModuleHandle> loadModule(Context& context, const Part& part) const;
  Result<std::unique_ptr<LoadedEntry>> describe(Context& context, ModuleHandle module, std::string_view symbol) const;

  std::shared_ptr<Gpu> gpu_;
  std::shared_ptr<artifact::Cache> cache_;
  PtxParts ptx_;
  std::vector<Part> parts_;                ///< those of ptx_, then one for each absent entry point
  std::vector<size_t> firstEntry_;         ///< of each phase; its versions and then its symbol follow one another
  std::vector<std::string_view> symbols_;  ///< of the entries
  std::vector<size_t> partOf_;             ///< of the entries
  bool mayPrint_ = false, reports_ = false;
  std::atomic<Placement*> current_{nullptr};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Placement>> placements_;
};

}  // namespace vortex::cuda
