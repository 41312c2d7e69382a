#pragma once

#include "msl/front/compile.h"

#include <clang/AST/ASTContext.h>

namespace vortex::msl::front {

/// Whether a pointer to `pointee` may be written: it names its address space, `thread` too, or what it stands for may have one.
bool namesSpace(clang::QualType pointee);

/// Every pointer that what is to be traversed writes without an address space is a problem, at its `*`.
void checkPointerSpaces(clang::ASTContext& context, Unit& unit);

}  // namespace vortex::msl::front
