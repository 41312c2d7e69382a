#include "base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace vortex::base {
namespace {

// Fractional bits of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t loadBigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

std::array<uint32_t, 64> expandMessage(const uint8_t* block) {
  std::array<uint32_t, 64> words;
  for (int i = 0; i < 16; ++i)
    words[i] = loadBigEndian(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    uint32_t near = words[i - 15], far = words[i - 2];
    uint32_t sigma0 = std::rotr(near, 7) ^ std::rotr(near, 18) ^ near >> 3;
    uint32_t sigma1 = std::rotr(far, 17) ^ std::rotr(far, 19) ^ far >> 10;
    words[i] = words[i - 16] + sigma0 + words[i - 7] + sigma1;
  }
  return words;
}

}  // namespace

// Fractional bits of the square roots of the first 8 primes.
Hasher::Hasher()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Hasher::compress(const uint8_t* block) {
  std::array<uint32_t, 64> words = expandMessage(block);
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t choice = (e & f) ^ (~e & g);
    uint32_t first = h + sum1 + choice + kRound[i] + words[i];
    uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a;
    a = first + sum0 + majority;
  }
  std::array<uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i)
    state_[i] += mixed[i];
}

Hasher& Hasher::add(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t used = bytes_ % 64;
    if (used == 0 && bytes.size() >= 64) {
      compress(reinterpret_cast<const uint8_t*>(bytes.data()));
      bytes.remove_prefix(64);
      bytes_ += 64;
      continue;
    }
    size_t count = std::min(64 - used, bytes.size());
    std::memcpy(pending_.data() + used, bytes.data(), count);
    bytes.remove_prefix(count);
    bytes_ += count;
    if (bytes_ % 64 == 0)
      compress(pending_.data());
  }
  return *this;
}

Hasher& Hasher::addNumber(uint64_t number) {
  char bytes[8];
  for (int i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(number >> (8 * i));
  return add({bytes, 8});
}

Hasher& Hasher::addField(std::string_view bytes) { return addNumber(bytes.size()).add(bytes); }

std::array<uint8_t, 32> Hasher::finish() {
  uint64_t bits = bytes_ * 8;
  static constexpr char kPadding[64] = {'\x80'};
  add({kPadding, 1 + (119 - bytes_ % 64) % 64});
  char length[8];
  for (int i = 0; i < 8; ++i)
    length[i] = static_cast<char>(bits >> (56 - 8 * i));
  add({length, 8});
  std::array<uint8_t, 32> digest;
  for (int i = 0; i < 32; ++i)
    digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::string Hasher::finishHex() {
  std::array<uint8_t, 32> digest = finish();
  std::string text;
  for (int i = 0; i < 16; ++i) {
    text += "0123456789abcdef"[digest[i] >> 4];
    text += "0123456789abcdef"[digest[i] & 15];
  }
  return text;
}

std::string contentHash(std::string_view bytes) { return Hasher().add(bytes).finishHex(); }

}  // namespace vortex::base
