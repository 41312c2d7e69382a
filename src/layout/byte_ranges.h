// Places for pieces of memory that come and go: first fit, so that freed bytes are used again before the end grows.
#pragma once

#include <cstdint>
#include <map>

namespace vortex::layout {

class ByteRanges {
public:
  /// Offset of `bytes` (at least 1) free bytes at a multiple of `alignment`, the lowest there is; they are taken until `free`.
  int64_t allocate(int64_t bytes, int64_t alignment);
  /// Where `allocate` would put them.
  int64_t find(int64_t bytes, int64_t alignment) const;
  /// Gives back what `allocate` returned.
  void free(int64_t offset);
  /// The end of the highest piece so far.
  int64_t peak() const { return peak_; }

private:
  std::map<int64_t, int64_t> taken_;  ///< offset → end
  int64_t peak_ = 0;
};

}  // namespace vortex::layout
