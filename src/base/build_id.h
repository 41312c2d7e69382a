#pragma once

#include "base/result.h"

#include <string>

namespace vortex::base {

/// The build id that the linker put into a shared library or program, as hex: another one whenever its code is another. Errors: no such file,
/// no 64-bit ELF file, no build id.
Result<std::string> buildIdOf(const std::string& path);

}  // namespace vortex::base
