// One type for the values of branches, match arms and breaks.
#pragma once

#include <span>

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// Gives the branches of an `if` or `match` one type. A value is wanted unless `expected` is unit.
Type joinBranches(BodyState& body, std::vector<Expr**>& branches, Type expected, SourceRange range);
/// The type that all of the values can take (see open.h), `wanted` if they can; null if there is none.
Type commonType(BodyState& body, std::span<Expr* const> values, Type wanted);

}  // namespace vortex::lang
