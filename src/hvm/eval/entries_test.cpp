#include "hvm/eval/entries.h"

#include <gtest/gtest.h>

namespace {

using namespace vortex::hvm;

TEST(HvmEntries, ComeInTheOrderInWhichTheyWent) {
  Entries entries;
  Term pushed = 0, popped = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 700 * (round % 5); ++i)
      entries.push(pushed++);
    for (int i = 0; i < 500 * (round % 4) && !entries.empty(); ++i)
      ASSERT_EQ(entries.pop(), popped++);
    ASSERT_EQ(entries.size(), pushed - popped);
    if (!entries.empty())
      ASSERT_EQ(entries[entries.size() - 1], pushed - 1);
  }
  while (!entries.empty())
    ASSERT_EQ(entries.pop(), popped++);
  EXPECT_EQ(popped, pushed);
}

}  // namespace
