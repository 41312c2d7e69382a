// Messages about the sizes of a launch.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace vortex::size {

/// `{0}` stands for the first of the values, `{0u}` for it as a number of 64 bits without a sign.
std::string fillMessage(std::string message, std::span<const int64_t> values);

}  // namespace vortex::size
