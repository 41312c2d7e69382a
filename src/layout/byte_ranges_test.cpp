#include "layout/byte_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace vortex::layout {
namespace {

struct Taken {
  int64_t offset, bytes;
};

TEST(ByteRanges, LivePiecesNeverOverlapAndAreAligned) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    ByteRanges ranges;
    std::vector<Taken> live;
    int64_t highest = 0;
    for (int step = 0; step < 60; ++step) {
      if (!live.empty() && random() % 3 == 0) {
        size_t victim = random() % live.size();
        ranges.free(live[victim].offset);
        live.erase(live.begin() + static_cast<ptrdiff_t>(victim));
        continue;
      }
      int64_t bytes = static_cast<int64_t>(1 + random() % 500), alignment = int64_t(1) << random() % 8;
      int64_t offset = ranges.allocate(bytes, alignment);
      EXPECT_EQ(offset % alignment, 0);
      for (const Taken& other : live)
        EXPECT_TRUE(offset + bytes <= other.offset || other.offset + other.bytes <= offset);
      live.push_back({offset, bytes});
      highest = std::max(highest, offset + bytes);
    }
    EXPECT_EQ(ranges.peak(), highest);
  }
}

TEST(ByteRanges, PiecesOfOneSizeTakeNoMoreThanTheMostAliveAtOnce) {
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round) {
    ByteRanges ranges;
    std::vector<int64_t> live;
    size_t most = 0;
    for (int step = 0; step < 60; ++step) {
      if (!live.empty() && random() % 2 == 0) {
        size_t victim = random() % live.size();
        ranges.free(live[victim]);
        live.erase(live.begin() + static_cast<ptrdiff_t>(victim));
      } else {
        live.push_back(ranges.allocate(64, 16));
        most = std::max(most, live.size());
      }
    }
    EXPECT_EQ(ranges.peak(), static_cast<int64_t>(64 * most));
  }
}

}  // namespace
}  // namespace vortex::layout
