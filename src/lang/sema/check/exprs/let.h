// `let` and `var`.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

void checkLet(BodyState& body, const syn::LetStmt* stmt, std::vector<Expr*>& out);

}  // namespace vortex::lang
