// Struct values.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Expr* checkStruct(BodyState& body, const syn::StructExpr* expr, Type expected);
bool shareExtents(BodyState& body, Expr* assign);

}  // namespace vortex::lang
