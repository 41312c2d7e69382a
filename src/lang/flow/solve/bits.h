// A set of small numbers of a fixed size.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vortex::lang::flow {

/// Up to 256 numbers are kept inside: states of dataflow problems are copied along every edge.
class Bits {
public:
  explicit Bits(std::size_t size = 0) : count_((size + 63) / 64), many_(count_ > few_.size() ? count_ : 0) {}
  bool test(std::size_t at) const { return (words()[at / 64] >> (at % 64)) & 1; }
  void set(std::size_t at) { words()[at / 64] |= uint64_t{1} << (at % 64); }
  void reset(std::size_t at) { words()[at / 64] &= ~(uint64_t{1} << (at % 64)); }
  void add(const Bits& other) {
    for (std::size_t i = 0; i < count_; ++i)
      words()[i] |= other.words()[i];
  }
  bool operator==(const Bits&) const = default;

private:
  uint64_t* words() { return many_.empty() ? few_.data() : many_.data(); }
  const uint64_t* words() const { return many_.empty() ? few_.data() : many_.data(); }

  std::size_t count_;
  std::array<uint64_t, 4> few_{};
  std::vector<uint64_t> many_;
};

}  // namespace vortex::lang::flow
