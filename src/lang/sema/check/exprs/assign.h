// Assignments and what may be written.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Expr* checkAssign(BodyState& body, const syn::AssignExpr* expr);
bool checkWritable(BodyState& body, Expr* place, SourceRange range, std::string_view what);

}  // namespace vortex::lang
