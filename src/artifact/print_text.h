#pragma once

#include "artifact/artifact.h"

#include <span>

namespace vortex::artifact {

/// Types of the values of a kernel print or a fault's message, a letter each (see Fault).
std::string_view printKinds(const Fault& format);

/// A line of a kernel print: each `{}` of the format is replaced by the next value, as its kind says, `{{` and `}}` by one brace. A format without
/// values is the text itself.
std::string printText(std::string_view format, std::string_view kinds, std::span<const uint64_t> values);

/// This entry of Kernel::faults describes values of a fault, not a print.
bool isOfFault(const Fault& format);

/// The message of a fault of the kernel with its values, as far as there are some.
std::string faultText(const Kernel& kernel, const Fault& fault, std::span<const uint64_t> values);

}  // namespace vortex::artifact
