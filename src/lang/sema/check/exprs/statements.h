// Blocks, `let`, `return` and irrefutable patterns.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Expr* checkBlock(BodyState& body, const syn::BlockExpr* block, Type expected);
Expr* checkReturn(BodyState& body, const syn::ReturnExpr* expr);
Expr* convertReturn(BodyState& body, Expr* value, Type result, SourceRange range);
void bindNothing(BodyState& body, const syn::Pattern* pattern);
Expr* storeConvert(BodyState& body, Expr* value, Type to, SourceRange because, std::string_view becauseText);
/// Binds the names of an irrefutable pattern to a value.
void bindPattern(BodyState& body, const syn::Pattern* pattern, Expr* value, bool isVar, std::vector<Expr*>& out);

}  // namespace vortex::lang
