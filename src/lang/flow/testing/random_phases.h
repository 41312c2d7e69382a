#pragma once

#include <cstdint>
#include <string>

namespace vortex::lang::flow::testing {

/// A kernel `k` with barriers at any depth of loops that all threads run alike, if at all: their rounds follow from arguments `n` and `m`, from a parameter
/// `d` of small numbers, from what the threads tell each other, and from numbers that loops leave behind. Buffers are chosen by such numbers. Few have a
/// barrier everywhere between what their threads do with one element.
std::string randomPhases(uint64_t seed);

}  // namespace vortex::lang::flow::testing
