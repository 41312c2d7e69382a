// Whether the arms of a `match` take every value.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

/// Null: one of `tests`, conditions of patterns on the variable `subject`, holds whatever it is. Else patterns of what none takes: all variants of
/// an enum, else one; empty where values cannot be counted (floats, texts, conditions on what is not known yet) or there are too many cases.
std::optional<std::vector<std::string>> findUncovered(BodyState& body, const Expr& subject,
                                                      const std::vector<const Expr*>& tests);

}  // namespace vortex::lang
