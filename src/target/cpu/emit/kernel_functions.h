// One CpuEntry function per phase.
#pragma once

#include "target/cpu/emit/emitter.h"

namespace vortex::target::cpu::emit {

/// Emits the entry point `symbol` and its body functions; returns the block scratch they need.
///
/// The body exists twice when the kernel has tensor parameters: for the usual innermost strides (one, the structs' for their fields), where
/// elements side by side become vectors, and for any strides. The entry point looks at the launch's strides. Bodies take tensor pointers as noalias arguments: a launch
/// refuses overlapping tensors unless all of them are only read. Not in cooperative kernels, whose blocks see what others write.
size::Expr emitKernelFunctions(ModuleState& state, ir::KernelOp kernel, const std::string& symbol);

}  // namespace vortex::target::cpu::emit
