#pragma once

#include "diag/diagnostic.h"
#include "lang/syntax/ast.h"

namespace vortex::lang::syntax {

/// Reports statements in an item that compute a value and do nothing with it: `a == b`, and `- b` that was to continue the line before.
void checkUnusedValues(const Item* item, diag::DiagnosticSink& sink);

}  // namespace vortex::lang::syntax
