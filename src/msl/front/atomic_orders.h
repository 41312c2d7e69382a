#pragma once

#include "msl/front/compile.h"

#include <clang/AST/ASTContext.h>

namespace vortex::msl::front {

/// Every order of an atomic function that is not known to be memory_order_relaxed is a problem, at that argument.
void checkAtomicOrders(clang::ASTContext& context, Unit& unit);

}  // namespace vortex::msl::front
