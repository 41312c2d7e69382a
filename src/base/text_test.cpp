#include "base/text.h"

#include <gtest/gtest.h>
#include <vector>

namespace {

using namespace vortex::base;

TEST(Text, ConcatStreamsEveryPart) { EXPECT_EQ(concat("a", 1, '-', 2.5), "a1-2.5"); }

TEST(Text, JoinPutsTheSeparatorOnlyBetween) {
  EXPECT_EQ(join(std::vector<int>{}, ", "), "");
  EXPECT_EQ(join(std::vector<int>{1}, ", "), "1");
  EXPECT_EQ(join(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
}

}  // namespace
