// vxt → Metal Shading Language text. What entry points take: artifact/metal_interface.h.
#pragma once

#include "base/result.h"

#include <mlir/IR/BuiltinOps.h>
#include <string>

namespace vortex::target::metal {

/// The whole module as one source file. Kernels are as `expandAsyncCopies` and `endThreads` leave them. Error: what Metal has not, with its
/// location.
Result<std::string> writeMetal(mlir::ModuleOp lowered);

}  // namespace vortex::target::metal
