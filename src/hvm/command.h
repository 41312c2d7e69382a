#pragma once

#include <string>
#include <vector>

namespace vortex::hvm {

/// `hvm` with these arguments: reads, runs and prints. Returns the exit status.
int runCommand(const std::vector<std::string>& arguments);

}  // namespace vortex::hvm
