#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vortex::base {

/// The candidate closest to `name` if it is close enough to be a slip, else "". A slip is one letter too few, too many, wrong or exchanged
/// with its neighbour; long names may have several. Other cases of letters (`Kernel`) and the places of `_` count less than a letter.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace vortex::base
