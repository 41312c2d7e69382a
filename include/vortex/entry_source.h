// Code that is made when a launch first needs it: of a kernel that compiler.h plans and runtime.h runs.
#pragma once

#include "vortex/result.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace vortex {

/// Makes the code of an entry point that a planned kernel lacks, by its name. Launches call it when they are prepared, from any thread and for several
/// entry points at once, and keep what it returns. Error: the compiler cannot, or knows no such entry point; it is the launch's.
using EntrySource = std::function<Result<std::vector<uint8_t>>(const std::string& entry)>;

}  // namespace vortex
