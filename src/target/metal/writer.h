// vxt → Metal Shading Language text. What entry points take: artifact/metal_interface.h.
#pragma once

#include "base/result.h"

#include <functional>
#include <mlir/IR/BuiltinOps.h>
#include <string>
#include <vector>

namespace vortex::target::metal {

/// First slots of the tensors that an entry point takes, by its symbol.
using TensorsOf = std::function<const std::vector<uint32_t>&(llvm::StringRef symbol)>;

/// The whole module as one source file. Kernels are as `expandAsyncCopies` and `endThreads` leave them. Error: what Metal has not, with its
/// location.
Result<std::string> writeMetal(mlir::ModuleOp lowered, const TensorsOf& tensorsOf);

}  // namespace vortex::target::metal
