// Attributes of vx.dot.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace vortex::ir {

/// Of a product of floats: its operands are multiplied in the type that they have, also where they were widened to it.
inline constexpr llvm::StringLiteral kOperandsAsWritten = "vx.as_written";

}  // namespace vortex::ir
