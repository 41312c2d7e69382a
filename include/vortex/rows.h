// What loops over rows cost on a GPU, for front ends that choose between two ways to write them.
#pragma once

#include <cstdint>

namespace vortex {

/// 32-bit values of a row that a thread keeps in registers between passes over it: loops of at most so many iterations load each value once.
constexpr int64_t kRowRegisters = 16;

}  // namespace vortex
