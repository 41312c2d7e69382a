#include "runtime/cpu/meeting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace vortex::cpu {
namespace {

TEST(Meeting, NobodyPassesBeforeAllHaveCome) {
  constexpr uint32_t kThreads = 7, kRounds = 200;
  Meeting meeting(kThreads);
  std::vector<std::atomic<uint32_t>> rounds(kThreads);
  std::atomic<uint32_t> behind{0};
  ASSERT_TRUE(onThreads(kThreads, [&](uint32_t own) {
    for (uint32_t round = 1; round <= kRounds; ++round) {
      rounds[own].store(round, std::memory_order_relaxed);
      EXPECT_TRUE(meeting.meet());
      for (const auto& other : rounds)
        behind += other.load(std::memory_order_relaxed) < round;
      EXPECT_TRUE(meeting.meet());
    }
    meeting.leave(false);
  }));
  EXPECT_EQ(behind, 0u);
}

TEST(Meeting, WhoHasLeftIsNotWaitedFor) {
  Meeting meeting(5);
  std::atomic<int> met{0};
  ASSERT_TRUE(onThreads(5, [&](uint32_t own) {
    for (uint32_t round = 0; round < 10 * (own + 1); ++round)
      met += meeting.meet();
    meeting.leave(false);
  }));
  EXPECT_EQ(met, 10 * (1 + 2 + 3 + 4 + 5));
}

TEST(Meeting, AFailureEndsTheWaitOfAllOthers) {
  Meeting meeting(4);
  std::atomic<int> ended{0};
  ASSERT_TRUE(onThreads(4, [&](uint32_t own) {
    if (own == 2)
      return meeting.leave(true);
    ended += !meeting.meet();
    ended += !meeting.meet();
    meeting.leave(false);
  }));
  EXPECT_EQ(ended, 6);
}

}  // namespace
}  // namespace vortex::cpu
