#include "artifact/checksum.h"

#include <cstring>

namespace vortex::artifact {

namespace {

/// Both halves of the 128-bit product: every input bit reaches every output bit after two rounds.
uint64_t mix(uint64_t lhs, uint64_t rhs) {
  const unsigned __int128 product = static_cast<unsigned __int128>(lhs) * rhs;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Odd constants: the first 64 fractional bits of sqrt(2), sqrt(3), sqrt(5), sqrt(7), lowest bit set.
constexpr uint64_t kSeeds[4] = {0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1};

uint64_t loadWord(const uint8_t* bytes, size_t count) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, count);
  return word;
}

}  // namespace

Checksum checksum(std::span<const uint8_t> bytes) {
  uint64_t low = kSeeds[0], high = kSeeds[1];
  size_t at = 0;
  for (; at + 16 <= bytes.size(); at += 16) {
    const uint64_t first = loadWord(bytes.data() + at, 8), second = loadWord(bytes.data() + at + 8, 8);
    low = mix(low ^ first, kSeeds[2]) + second;
    high = mix(high ^ second, kSeeds[3]) + first;
  }
  const size_t rest = bytes.size() - at;
  const uint64_t first = rest == 0 ? 0 : loadWord(bytes.data() + at, rest < 8 ? rest : 8);
  const uint64_t second = rest > 8 ? loadWord(bytes.data() + at + 8, rest - 8) : 0;
  low = mix(low ^ first, kSeeds[2] ^ second);
  high = mix(high ^ second ^ kSeeds[0], kSeeds[3] ^ first);
  // The length ends the stream, so appended zeros change the value.
  const uint64_t sums[2] = {mix(low ^ bytes.size(), kSeeds[1] ^ high),
                            mix(high ^ kSeeds[2], low ^ kSeeds[3] ^ bytes.size())};
  Checksum result;
  std::memcpy(result.data(), sums, sizeof sums);
  return result;
}

}  // namespace vortex::artifact
