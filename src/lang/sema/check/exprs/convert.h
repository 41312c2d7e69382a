// Implicit conversions and casts; types that literals and defaults take from their uses.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// Why a value is converted: decides which implicit conversions exist and what the error says.
enum class Site : uint8_t { Let, Assign, Return, Argument, Element, Operand };

Expr* convert(BodyState& body, Expr* expr, Type to, Site site, SourceRange because = {},
              std::string_view becauseText = {});
Expr* mismatch(BodyState& body, Expr* expr, Type to, SourceRange because, std::string_view becauseText);
/// A product of such elements may be summed up in a wider type, which holds all of their values.
bool mayAccumulateIn(Type elem, Type sum);
/// What was written where a product with a vector put a reshape of it or of its result; else `expr`.
Expr* beforeReshape(Expr* expr);
/// Lets `expr` be summed up in the elements of `to`, if it is a product that may.
bool accumulateIn(BodyState& body, Expr* expr, Type to);
Expr* cast(BodyState& body, Expr* expr, Type to);  ///< elementwise, no checks; the same expression when nothing changes
/// What is written, as code in a help: with parentheses where an operator behind or before it would bind tighter, `(…)` if it is long.
std::string operandText(const BodyState& body, const Expr* expr);
std::string castText(const BodyState& body, const Expr* expr, Type to, std::string_view within);
/// Makes two numeric operands one scalar type; false after an error.
bool unify(BodyState& body, Expr*& lhs, Expr*& rhs, std::string_view what, SourceRange range);

}  // namespace vortex::lang
