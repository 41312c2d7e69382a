// Which memory a barrier of the block orders. Metal's barriers name it; back ends order all, the interpreter's check of races takes it at its word.
#pragma once

#include <llvm/ADT/StringRef.h>

namespace vortex::ir {

/// Of a vx.barrier, a string: "shared", "global" or "none". Without it all memory is ordered.
inline constexpr llvm::StringLiteral kOrderedMemoryAttr = "vx.ordered_memory";

}  // namespace vortex::ir
