// Numbers and lists without a type of their own.
#pragma once

#include <span>

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Type scalarIn(Type expected);  ///< of a tensor or reference what it holds; null unless that is a number
/// What a number with a fraction, or the name of such a constant, is without the rounding to f32; nothing where that is lost.
std::optional<double> writtenInF64(BodyState& body, const Expr* literal);
Expr* adaptLiteral(BodyState& body, Expr* literal, Type expected);  ///< an untyped constant in its context
Expr* checkInt(BodyState& body, const syn::IntExpr* expr, Type expected, bool negative);
Expr* checkFloat(BodyState& body, const syn::FloatExpr* expr, Type expected, bool negative);
Expr* checkArray(BodyState& body, const syn::ArrayExpr* expr, Type expected);
bool isUntyped(BodyState& body,
               const syn::Expr* expr);  ///< a number (or arithmetic on numbers) without a type of its own
bool isUntypedFloat(BodyState& body, const syn::Expr* expr);
/// What they are without a type of their own: f32 if one has a fraction; null if one is no plain number.
Type defaultOf(BodyState& body, std::span<const syn::Expr* const> numbers);
/// What the value of branches, `select`, `min`, … is one of; null for one that cannot be told.
std::vector<const syn::Expr*> sources(BodyState& body, const syn::Expr* expr);

}  // namespace vortex::lang
