// Values known while compiling.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// A `what` of `constant` with a help of its own.
inline constexpr std::string_view kProgressionElement = "an element of a progression";

Expr* constUse(BodyState& body, const Symbol& symbol, SourceRange range, Type expected);
Expr* checkProgression(BodyState& body, const syn::ArrayExpr* expr, Type expected);
/// Checks and evaluates; null after an error. The result is a literal (see ConstItemValue).
Expr* constant(BodyState& body, const syn::Expr* expr, Type expected, std::string_view what);
std::optional<__int128> constantInt(BodyState& body, const syn::Expr* expr, Type expected, std::string_view what);
/// Reduces a typed expression to a literal; null if it is not constant (nothing reported unless overflow).
Expr* fold(BodyState& body, Expr* expr, bool& reported);
Expr* clone(BodyState& body, const Expr* expr, SourceRange range);

}  // namespace vortex::lang
