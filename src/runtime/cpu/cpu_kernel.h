#pragma once

#include "runtime/cpu/block_run.h"
#include "runtime/cpu/elf_object.h"
#include "runtime/hal/device.h"

#include <memory>
#include <vector>

namespace vortex::cpu {

/// A kernel whose object is loaded and whose phases have addresses.
class CpuKernel : public hal::LoadedKernel {
public:
  /// Errors: another architecture, a processor feature this host lacks (facts "requires.<feature>", named as in /proc/cpuinfo's
  /// flags, e.g. "requires.avx512f"), a broken object, a missing entry point.
  static Result<hal::KernelRef> load(const hal::Device* device, std::shared_ptr<const artifact::Kernel> kernel);

  /// Error: more blocks that must run at the same time than threads do.
  Result<void> bind(hal::Launch& launch) override;

  artifact::CpuEntry entry(size_t phase) const { return phases_[phase].entry; }
  PhaseHistory& history(size_t phase) const { return *phases_[phase].history; }
  /// As the fact "bands.<symbol>" says.
  BlockRun::Order order(size_t phase) const { return phases_[phase].order; }

private:
  CpuKernel(const hal::Device* device, std::shared_ptr<const artifact::Kernel> kernel,
            std::unique_ptr<LoadedObject> object);

  struct Phase {
    artifact::CpuEntry entry;
    std::unique_ptr<PhaseHistory> history;
    BlockRun::Order order;
  };
  std::unique_ptr<LoadedObject> object_;
  std::vector<Phase> phases_;
};

}  // namespace vortex::cpu
