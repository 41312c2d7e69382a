#pragma once

#include <llvm/ADT/StringRef.h>

namespace vortex::ir {

/// An attribute of memory, where messages count as the source does: how many elements of the view are one of the source's.
inline constexpr llvm::StringLiteral kUnitsOfElement = "units_of_element";

}  // namespace vortex::ir
