#pragma once

#include <string>

namespace vortex::pipeline {

/// The linker's build id of this program, as hex: different whenever its code is. Part of every cache key.
const std::string& buildId();

}  // namespace vortex::pipeline
