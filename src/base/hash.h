#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace vortex::base {

/// SHA-256 (FIPS 180-4) of a stream of bytes.
class Hasher {
public:
  Hasher();
  Hasher& add(std::string_view bytes);
  /// Adds the length first, so that ("ab","c") and ("a","bc") differ.
  Hasher& addField(std::string_view bytes);
  Hasher& addNumber(uint64_t number);
  /// Ends the stream; the hasher must not be used afterwards.
  std::array<uint8_t, 32> finish();
  /// The first 128 bits of finish() as 32 lower-case hex digits: the content address used by caches.
  std::string finishHex();

private:
  void compress(const uint8_t* block);

  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> pending_;
  uint64_t bytes_ = 0;
};

/// Content address of one string: 32 hex digits.
std::string contentHash(std::string_view bytes);

}  // namespace vortex::base
