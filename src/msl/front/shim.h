#pragma once

#include <map>
#include <string>

namespace vortex::msl::front {

/// The shim's files by path: the prelude, and an empty file for every header of Metal's library, which the prelude stands for.
const std::map<std::string, std::string>& shimFiles();

}  // namespace vortex::msl::front
