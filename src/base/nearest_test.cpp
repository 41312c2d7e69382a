#include "base/nearest.h"

#include <gtest/gtest.h>

namespace {

using vortex::base::nearest;

TEST(Nearest, FindsOneSlipOfEachKind) {
  const std::vector<std::string> words = {"struct", "kernel", "return", "for", "f32"};
  EXPECT_EQ(nearest("kernl", words), "kernel");
  EXPECT_EQ(nearest("kernall", words), "kernel");
  EXPECT_EQ(nearest("kernnel", words), "kernel");
  EXPECT_EQ(nearest("strcut", words), "struct");
  EXPECT_EQ(nearest("fro", words), "for");
  EXPECT_EQ(nearest("f23", words), "f32");
  EXPECT_EQ(nearest("F32", words), "f32");
}

TEST(Nearest, OtherWordsAreNoSlips) {
  const std::vector<std::string> words = {"for", "in", "kernel"};
  EXPECT_EQ(nearest("x", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest("cat", words), "");
  EXPECT_EQ(nearest("colonel", words), "");
  EXPECT_EQ(nearest("for", words), "");
  EXPECT_EQ(nearest(std::string(100, 'a'), {std::string(99, 'a')}), "");
}

TEST(Nearest, CaseAndUnderscoresCountLessThanLetters) {
  EXPECT_EQ(nearest("globalId", {"globals", "global_id"}), "global_id");
  EXPECT_EQ(nearest("KERNEL", {"kernel"}), "kernel");
  EXPECT_EQ(nearest("count", {"mount", "Count"}), "Count");
  EXPECT_EQ(nearest("_", {"a", "__"}), "");
}

TEST(Nearest, TheFirstOfEquallyCloseOnesWins) { EXPECT_EQ(nearest("bat", {"cat", "hat"}), "cat"); }

}  // namespace
