// Accumulators that are declared as the part of one thread.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

bool adoptFragment(BodyState& body, const Expr* accumulator, const Expr* product);
Type wholeOfFragment(const BodyState& body, Type declared, const syn::Name& name);

}  // namespace vortex::lang
