// Numbers about a processor's vector unit, for emitters that serve any number of lanes.
#pragma once

#include <cstdint>

namespace vortex::target {

/// What emitters may know about the target: numbers, never a name.
struct VectorFeatures {
  uint32_t vectorBytes = 16;      ///< widest register arithmetic should use
  uint32_t vectorRegisters = 16;  ///< architectural vector registers
  bool fma = false;               ///< fused multiply-add in hardware
  bool f16Conversion = false;     ///< f16 ↔ f32 in hardware
  bool avx2 = false;              ///< 256-bit integers and gathers
  bool avx512 = false;            ///< masks, 512-bit integers and floats (F, BW, DQ, VL)

  /// Lanes of one register for elements of `elementBytes` bytes.
  uint32_t lanes(uint32_t elementBytes) const { return vectorBytes / elementBytes; }
};

}  // namespace vortex::target
