// What may be staged, and where to.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

bool isStageable(BodyState& body, const Expr* view, std::string_view what);
bool mayStageInto(BodyState& body, const Expr* target, const Expr* view, SourceRange range);

}  // namespace vortex::lang
