#pragma once

#include <cstdint>

namespace vortex::cpu {

// The conversions that LLVM calls where the processor has no instruction. Ours, because libgcc's set differs by version.
// Rounding: to nearest, ties to even. Exact for every input, including subnormals; NaN stays NaN.
float extendHalf(uint16_t bits);
uint16_t truncateToHalf(double value);
uint16_t truncateToBFloat(double value);

} // namespace vortex::cpu
