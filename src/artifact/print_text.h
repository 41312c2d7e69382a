#pragma once

#include "artifact/artifact.h"

#include <span>

namespace vortex::artifact {

/// Types of the values of a kernel print, a letter each (see Fault).
std::string_view printKinds(const Fault& format);

/// A line of a kernel print: each `{}` of the format is replaced by the next value, as its kind says.
std::string printText(std::string_view format, std::string_view kinds, std::span<const uint64_t> values);

}  // namespace vortex::artifact
