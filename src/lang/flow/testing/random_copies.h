#pragma once

#include <cstdint>
#include <string>

namespace vortex::lang::flow::testing {

/// A kernel `k` of one block of 4 threads that stages parts of `x` (N elements) into buffers ahead of their use, with a parameter `lim: usize`. Often it is right;
/// else a copy, a barrier or a condition is missing or in the wrong place.
std::string randomCopies(uint64_t seed);

}  // namespace vortex::lang::flow::testing
