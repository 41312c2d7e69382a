#include "layout/byte_ranges.h"

#include "base/check.h"

#include <algorithm>

namespace vortex::layout {

int64_t ByteRanges::find(int64_t bytes, int64_t alignment) const {
  VORTEX_CHECK(alignment > 0 && bytes >= 0);
  bytes = std::max<int64_t>(bytes, 1);
  int64_t offset = 0;
  for (const auto& [begin, end] : taken_) {
    if (offset + bytes <= begin)
      break;
    offset = std::max(offset, (end + alignment - 1) / alignment * alignment);
  }
  return offset;
}

int64_t ByteRanges::allocate(int64_t bytes, int64_t alignment) {
  const int64_t offset = find(bytes, alignment);
  bytes = std::max<int64_t>(bytes, 1);
  taken_[offset] = offset + bytes;
  peak_ = std::max(peak_, offset + bytes);
  return offset;
}

void ByteRanges::free(int64_t offset) { VORTEX_CHECK(taken_.erase(offset) == 1, "these bytes are not taken"); }

}  // namespace vortex::layout
