// Subscripts, slices and lists of extents.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Expr* checkIndex(BodyState& body, const syn::IndexExpr* expr);
Expr* index(BodyState& body, const syn::Expr* expr, const DimExpr* extent);  ///< any integer, as usize
Expr* asIndex(BodyState& body, Expr* position, const DimExpr* extent);
std::vector<Expr*> extents(BodyState& body, const syn::Expr* expr, bool allowScalar,
                           std::string_view what);  ///< `[a, b]` or `a` as usize values

}  // namespace vortex::lang
