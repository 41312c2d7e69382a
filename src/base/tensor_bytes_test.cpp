#include "base/fresh_seed.h"
#include "base/tensor_bytes.h"

#include <gtest/gtest.h>
#include <random>

namespace vortex::base {
namespace {

TEST(TensorBytes, TheLastSizeBelowTheLimitIsAcceptedAndTheNextIsNot) {
  const int64_t most = int64_t{1} << 47;
  EXPECT_EQ(tensorBytes("t", std::vector<int64_t>{most}, 1).value(), uint64_t(most));
  EXPECT_EQ(tensorBytes("t", std::vector<int64_t>{most / 4}, 4).value(), uint64_t(most));
  EXPECT_FALSE(tensorBytes("t", std::vector<int64_t>{most + 1}, 1));
  EXPECT_FALSE(tensorBytes("t", std::vector<int64_t>{most / 4 + 1}, 4));
  EXPECT_EQ(tensorBytes("t", std::vector<int64_t>{0, most}, 1).value(), 0u);
}

TEST(TensorBytes, AnExtentOfZeroExcusesNothing) {
  auto refused = tensorBytes("t", std::vector<int64_t>{int64_t{1} << 46, 0, 4}, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().message,
      "t of shape [70368744177664, 0, 4] and 1-byte elements counts as 281474976710656 bytes (0 as 1), a tensor has at "
      "most 140737488355328");
}

TEST(TensorBytes, ProductsThatWrapInSixtyFourBitsAreRefusedWithTheirNumber) {
  const int64_t large = int64_t{1} << 62;
  for (std::vector<int64_t> extents :
       {std::vector{large}, {large, large}, {int64_t{1} << 32, int64_t{1} << 32}, {large, large, large}}) {
    auto refused = tensorBytes("t", extents, 4);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(showBytes(fullBytes(extents, 4))), std::string::npos);
  }
  EXPECT_EQ(showBytes(fullBytes(std::vector{large}, 4)), "18446744073709551616");
  EXPECT_EQ(showBytes(fullBytes(std::vector{large, large, large}, 4)), "more than 2^127");
}

TEST(TensorBytes, RandomShapesAgreeWithLongDoubles) {
  std::mt19937_64 random(base::freshSeed());
  for (int round = 0; round < 10000; ++round) {
    std::vector<int64_t> extents(random() % 4);
    for (int64_t& extent : extents)
      extent = static_cast<int64_t>(random() >> (random() % 63 + 1));
    long double product = 8;
    bool isEmpty = false;
    for (int64_t extent : extents) {
      product *= extent == 0 ? 1 : static_cast<long double>(extent);
      isEmpty |= extent == 0;
    }
    auto bytes = tensorBytes("t", extents, 8);
    if (product < 1.4e14L || product > 1.41e14L)
      ASSERT_EQ(bool(bytes), product < 1.4e14L);
    if (bytes)
      ASSERT_EQ(static_cast<long double>(*bytes), isEmpty ? 0 : product);
  }
}

}  // namespace
}  // namespace vortex::base
