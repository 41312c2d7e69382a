// A set of small numbers of a fixed size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vortex::lang::ownership {

class Bits {
public:
  explicit Bits(std::size_t size = 0) : words_((size + 63) / 64) {}
  bool test(std::size_t at) const { return (words_[at / 64] >> (at % 64)) & 1; }
  void set(std::size_t at) { words_[at / 64] |= uint64_t{1} << (at % 64); }
  void reset(std::size_t at) { words_[at / 64] &= ~(uint64_t{1} << (at % 64)); }
  /// True if something was added.
  bool add(const Bits& other) {
    bool changed = false;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const uint64_t joined = words_[i] | other.words_[i];
      changed = changed || joined != words_[i];
      words_[i] = joined;
    }
    return changed;
  }
  bool none() const {
    for (uint64_t word : words_)
      if (word != 0)
        return false;
    return true;
  }

private:
  std::vector<uint64_t> words_;
};

}  // namespace vortex::lang::ownership
