// The type of methods' `Self`.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

Type canonicalSelf(BodyState& body, Type type);

}  // namespace vortex::lang
