// Parameters, result and dimension bindings of one function instance.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

bool declareSignature(BodyState& body);
void declareReduce(BodyState& body, const syn::Expr* op);

}  // namespace vortex::lang
