#pragma once

#include <string>
#include <string_view>

namespace vortex::source {

/// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string jsonString(std::string_view text);

}  // namespace vortex::source
