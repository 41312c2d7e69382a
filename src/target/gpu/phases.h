// The phases of a scheduled module → vxt, described for the artifact. What every GPU target does before it emits its own code.
#pragma once

#include "target/gpu/lowering.h"

#include <llvm/ADT/STLFunctionalExtras.h>

namespace vortex::target::gpu {

/// A target's own way to lower a phase. False: the common way. Errors are left in the state.
using SpecialPhase = llvm::function_ref<bool(ModuleState& state, ir::KernelOp phase, artifact::Phase& described)>;

/// Fills in `kernel` but for its code: interface, phases with their versions, steps, faults. `module`: one vx.entry and scheduled vx.kernel
/// phases in order; not changed. `state.module` receives the vxt kernels, one per version of a phase, and is verified. Error: a construct that
/// cannot be lowered or a resource the chip does not have, with its source location and numbers.
Result<void> lowerPhases(ModuleState& state, mlir::ModuleOp module, SpecialPhase special);

/// Shared memory of a block, the tail that the launch sizes included.
size::Expr sharedBytesOf(ir::vxt::KernelOp kernel);

}  // namespace vortex::target::gpu
