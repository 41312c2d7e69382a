// What a version of a phase is made of.
#pragma once

#include "target/gpu/placement.h"

namespace vortex::target::gpu {

/// The phase, or a copy that is written for tensors which lie as `assumptions` says, and lives as long as this.
class VersionPhase {
public:
  /// `lanes`: neighbouring threads that are one where rows are whole; 1: none.
  VersionPhase(ir::KernelOp phase, const Assumptions& assumptions, int64_t lanes);
  ~VersionPhase();
  VersionPhase(const VersionPhase&) = delete;
  VersionPhase& operator=(const VersionPhase&) = delete;

  ir::KernelOp get() const { return copy_ ? copy_ : phase_; }

private:
  ir::KernelOp phase_, copy_;
};

}  // namespace vortex::target::gpu
