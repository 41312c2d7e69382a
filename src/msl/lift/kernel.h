#pragma once

#include "msl/front/compile.h"

namespace vortex::msl::lift {

/// Lowers the entry of a unit to a vx module and fills the rest of the response. False after a problem.
bool lowerEntry(front::Unit& unit, const Request& request, Response& response);

}  // namespace vortex::msl::lift
