// The launch interface of a module as the artifact describes it.
#pragma once

#include "artifact/artifact.h"
#include "ir/vx.h"

namespace vortex::target {

/// Parameters, results, lets, temporaries, constraints, scalar results and slot count. An argument's dictionary may say its exact type in `type` (the
/// language's spelling, "u32"); otherwise integers are signed and index is u64.
void describeInterface(ir::EntryOp entry, artifact::Kernel& kernel);

/// Everything but scratchBytes, for the kernel whose interface is described. The symbol is a C identifier.
artifact::Phase describePhase(ir::KernelOp phase, artifact::Kernel& kernel);

/// The module's vx.launch, once the kernel has a phase for each of its vx.kernels, in their order.
void describeSteps(mlir::ModuleOp module, artifact::Kernel& kernel);

/// Name, type (the user's spelling where irgen left it) and declaration of a shared allocation.
artifact::SharedTensor describeSharedTensor(ir::AllocOp alloc);

/// One note per source line with guarded accesses: "guard file:line:column: load of `a`".
void describeGuards(ir::KernelOp phase, artifact::Kernel& kernel);

/// Elements between neighbours of the innermost dimension of argument `number` as the language's own host code and the launch allocate it:
/// one, or for a field of an array of structs the struct's size. Callers may give parameters others.
int64_t innermostStride(const artifact::Kernel& kernel, unsigned number);

}  // namespace vortex::target
