#include "base/text.h"

#include "base/counted.h"

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

TEST(Text, OneIsCountedInTheSingular) {
  EXPECT_EQ(counted(0, "argument"), "0 arguments");
  EXPECT_EQ(counted(size_t{1}, "argument"), "1 argument");
  EXPECT_EQ(counted(2, "argument"), "2 arguments");
}

}  // namespace
