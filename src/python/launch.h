// Arguments of launches.
#pragma once

#include "python/arrays.h"

#include <vector>

namespace vortex::python {

void bindLaunches(nb::module_& module);

}  // namespace vortex::python
