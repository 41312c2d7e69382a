#include "runtime/hal/overlap.h"

#include <gtest/gtest.h>
#include <random>
#include <set>
#include <vector>

namespace {

using namespace vortex::hal;

struct View {
  uint64_t address;
  uint32_t elementBytes;
  std::vector<int64_t> extents, strides;
  Footprint footprint() const { return {address, elementBytes, extents, strides}; }

  /// Brute force: every byte, as often as an element holds it.
  std::multiset<int64_t> bytes() const {
    std::multiset<int64_t> all;
    int64_t count = 1;
    for (int64_t extent : extents)
      count *= extent;
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = static_cast<int64_t>(address), rest = i;
      for (size_t k = extents.size(); k-- > 0; rest /= extents[k])
        at += rest % extents[k] * strides[k];
      for (uint32_t byte = 0; byte < elementBytes; ++byte)
        all.insert(at + byte);
    }
    return all;
  }
};

View randomView(std::mt19937& random) {
  View view{1000 + random() % 40, uint32_t{1} << (random() % 3), {}, {}};
  const size_t rank = random() % 4;
  for (size_t k = 0; k < rank; ++k) {
    view.extents.push_back(random() % 5);
    view.strides.push_back(static_cast<int64_t>(random() % 41) - 20);
  }
  return view;
}

TEST(Overlap, AgreesWithBruteForceOnRandomViews) {
  std::mt19937 random(3);
  int overlapping = 0;
  for (int round = 0; round < 20000; ++round) {
    const View lhs = randomView(random), rhs = randomView(random);
    const auto left = lhs.bytes(), right = rhs.bytes();
    bool expected = false;
    for (int64_t byte : left)
      expected |= right.count(byte) != 0;
    ASSERT_EQ(mayOverlap(lhs.footprint(), rhs.footprint()), expected);
    ASSERT_EQ(mayOverlap(rhs.footprint(), lhs.footprint()), expected);
    overlapping += expected;
    ASSERT_EQ(mayOverlapItself(lhs.footprint()), std::set<int64_t>(left.begin(), left.end()).size() != left.size());
  }
  EXPECT_GT(overlapping, 1000);
  EXPECT_LT(overlapping, 19000);
}

TEST(Overlap, LargeViewsOfOneArrayAreDecidedExactly) {
  const int64_t n = 1 << 20;
  const View left{0, 4, {n, n / 2}, {4 * n, 4}}, right{static_cast<uint64_t>(2 * n), 4, {n, n / 2}, {4 * n, 4}};
  EXPECT_FALSE(mayOverlap(left.footprint(), right.footprint()));
  const View wider{0, 4, {n, n / 2 + 1}, {4 * n, 4}};
  EXPECT_TRUE(mayOverlap(wider.footprint(), right.footprint()));
  const View even{0, 2, {n}, {4}}, odd{2, 2, {n}, {4}};
  EXPECT_FALSE(mayOverlap(even.footprint(), odd.footprint()));
}

}  // namespace
