#pragma once

#include "base/result.h"

#include <string>
#include <utility>
#include <vector>

namespace vortex::msl {

/// The entries of a launch file, a JSON object, as words of a command line: ("grid", "64,1"), ("buffers", "0=in.npy"). Error: no JSON object.
base::Result<std::vector<std::pair<std::string, std::string>>> readLaunchFile(const std::string& text);

}  // namespace vortex::msl
