// One type for the values of branches, match arms and breaks.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// Gives the branches of an `if` or `match` one type. A value is wanted unless `expected` is unit.
Type joinBranches(BodyState& body, std::vector<Expr**>& branches, Type expected, SourceRange range);
/// The expression that a block's value is.
Expr* tailOf(Expr* expr);
/// A number that took its default type.
bool isAdaptable(const Expr* expr);
/// Numbers of default types may be meant to have the other type, alone and as parts of tuples and arrays that are written there.
bool canAdapt(BodyState& body, const Expr* expr, Type type);
/// Gives a block whose value `canAdapt` that type.
void adaptTail(BodyState& body, Expr* expr, Type type);

}  // namespace vortex::lang
