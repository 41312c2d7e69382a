// The type of any expression.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Expr* check(BodyState& body, const syn::Expr* expr, Type expected = nullptr);
/// check, then dereferenced: what operators and most built-ins want.
Expr* value(BodyState& body, const syn::Expr* expr, Type expected = nullptr);
Expr* deref(BodyState& body, Expr* expr);
Expr* rangeOf(BodyState& body, Expr* begin, Expr* end, bool endIsLength, SourceRange range);

}  // namespace vortex::lang
