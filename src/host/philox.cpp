#include "host/philox.h"

namespace vortex::host {

std::array<uint32_t, 4> philox(uint64_t counter, uint64_t key) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  std::array<uint32_t, 4> state{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t product0 = uint64_t{kMultiplier0} * state[0];
    uint64_t product1 = uint64_t{kMultiplier1} * state[2];
    state = {static_cast<uint32_t>(product1 >> 32) ^ state[1] ^ key0, static_cast<uint32_t>(product1),
             static_cast<uint32_t>(product0 >> 32) ^ state[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return state;
}

float unitFloat(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

double unitDouble(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

}  // namespace vortex::host
