#pragma once

#include <array>
#include <cstdint>

namespace vortex::host {

/// Philox4x32-10: four 32-bit words from a 128-bit counter and a 64-bit key; the same bits on every machine.
/// Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011.
std::array<uint32_t, 4> philox(uint64_t counter, uint64_t key);

/// In [0, 1): the top 24 (f32) or 53 (f64) bits scaled.
float unitFloat(uint32_t word);
double unitDouble(uint32_t high, uint32_t low);

}  // namespace vortex::host
