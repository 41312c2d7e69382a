// The body of one function instance.
#pragma once

#include "lang/sema/check/body_state.h"

namespace vortex::lang {

void checkBody(BodyState& body);

}  // namespace vortex::lang
