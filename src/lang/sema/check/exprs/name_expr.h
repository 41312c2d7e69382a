// Names and members as values.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Expr* checkName(BodyState& body, const syn::NameExpr* expr, Type expected);
Expr* checkMember(BodyState& body, const syn::MemberExpr* expr, Type expected);
Expr* checkMemberOfValue(BodyState& body, Expr* base, const syn::Name& name, SourceRange range);
Expr* enumVariant(BodyState& body, Type type, const syn::Name& name, SourceRange range);
Expr* extentOf(BodyState& body, Expr* tensor, size_t dim, SourceRange range);
Expr* checkDotName(BodyState& body, const syn::DotNameExpr* expr, Type expected);

}  // namespace vortex::lang
