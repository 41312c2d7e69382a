// The installed header defines Result; inside the compiler it is reached through base.
#pragma once

#include "base/check.h"
#include "vortex/result.h"

namespace vortex::base {

using vortex::Error;
using vortex::Result;

}  // namespace vortex::base
