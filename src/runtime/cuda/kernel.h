#pragma once

#include "artifact/cache.h"
#include "runtime/cuda/context.h"
#include "runtime/hal/device.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace vortex::cuda {

/// An entry point in one context.
struct LoadedPhase {
  FunctionHandle function = nullptr;
  uint32_t maxThreads = 0;  ///< of a block, as its registers allow
  uint32_t staticSharedBytes = 0;
  mutable std::atomic<uint32_t> dynamicSharedBytes{0};  ///< allowed so far
};

/// The kernel's machine code in one context.
struct LoadedModule {
  LoadedModule(ContextRef context, size_t phases) : context(std::move(context)), phases(phases) {}
  ~LoadedModule();
  ContextRef context;
  ModuleHandle handle = nullptr;
  std::vector<LoadedPhase>
      phases;  ///< phase i at i, its general version, if it has one, behind all of them at count + i
  const LoadedPhase& phase(size_t i, bool general) const { return phases[general ? phases.size() / 2 + i : i]; }
};

class CudaKernel : public hal::LoadedKernel {
public:
  /// Errors: another target, PTX that is newer than the driver or that it refuses (with its log), a missing entry point, more parameters than
  /// a launch can carry, a phase without hardware threads.
  static Result<hal::KernelRef> load(const hal::Device* device, Gpu& gpu, artifact::Cache* cache,
                                     std::shared_ptr<const artifact::Kernel> kernel);

  /// The module in a context; loads the machine code again after a loss.
  Result<const LoadedModule*> moduleIn(const ContextRef& context);

  bool mayPrint() const { return mayPrint_; }
  /// Whether a launch can leave something in its report.
  bool reports() const { return !artifact().faults.empty(); }

private:
  CudaKernel(const hal::Device* device, Gpu& gpu, std::shared_ptr<const artifact::Kernel> kernel);
  Result<void> place(const ContextRef& context);

  uint32_t sharedOptInBytes_;
  std::vector<uint8_t> machineCode_;
  bool mayPrint_ = false;
  bool wasAccepted_ = false;  ///< the driver loaded the machine code
  std::atomic<const LoadedModule*> current_{nullptr};
  std::mutex mutex_;
  std::vector<std::unique_ptr<LoadedModule>> modules_;
};

}  // namespace vortex::cuda
