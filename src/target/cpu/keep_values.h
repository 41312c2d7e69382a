// Values that rows compute in one pass and again in a later one.
#pragma once

#include <mlir/IR/BuiltinOps.h>

namespace vortex::target::cpu {

/// Two loops of a kernel's thread regions, `for i in range(0, n, step)`, that compute the same costly function of the same elements, as
/// softmax does for its sum and for its quotients: the first keeps what each thread computes, and the later one reads it, in launches whose rows
/// fit. Others compute it again. Bits stay what they are: the elements are of parameters that the kernel does not write.
void keepValues(mlir::ModuleOp module);

}  // namespace vortex::target::cpu
