// Lists of tuples of plain numbers: `[(0, 1.0), (1, 2.0)]`. The numbers at one place of the tuples take the type of the first that has one of its own
// there, else the one that a use asks for, as the numbers of a list do.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// Null if it is not a list of tuples of one length.
Expr* checkTupleList(BodyState& body, const syn::ArrayExpr* expr);
/// The pattern was bound to what is written there, or walks over it. `value`: the same, checked.
void noteTupleList(BodyState& body, const syn::Pattern* pattern, const syn::Expr* written, const Expr* value);
/// Of a plain number in such a list: it gets the type, and the body is checked again.
bool learnPart(BodyState& body, const Expr* expr, Type to);

}  // namespace vortex::lang
