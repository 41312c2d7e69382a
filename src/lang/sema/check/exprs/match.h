// `match` and its patterns.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Expr* checkMatch(BodyState& body, const syn::MatchExpr* expr, Type expected);
Expr* conjunction(BodyState& body, Expr* a, Expr* b);

}  // namespace vortex::lang
