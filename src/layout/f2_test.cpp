#include "layout/f2.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace vortex::layout {
namespace {

std::set<Bits> members(std::span<const Bits> vectors) {
  std::set<Bits> result{0};
  for (Bits vector : vectors) {
    std::set<Bits> more;
    for (Bits member : result)
      more.insert(member ^ vector);
    result.merge(more);
  }
  return result;
}

Columns randomVectors(std::mt19937_64& random, unsigned bits, unsigned count) {
  Columns result;
  for (unsigned i = 0; i < count; ++i)
    result.push_back(random() & random() & ((Bits(1) << bits) - 1));
  return result;
}

TEST(F2, RankContainmentAndCombinationsAgreeWithEnumeration) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    unsigned bits = 1 + random() % 9;
    Columns vectors = randomVectors(random, bits, random() % 10);
    auto all = members(vectors);
    Span span(vectors);
    ASSERT_EQ(Bits(1) << span.dim(), all.size());
    for (Bits vector = 0; vector < Bits(1) << bits; ++vector) {
      ASSERT_EQ(span.contains(vector), all.contains(vector));
      auto made = span.combination(vector);
      ASSERT_EQ(made.has_value(), all.contains(vector));
      if (made)
        ASSERT_EQ(applyColumns(vectors, *made), vector);
    }
  }
}

TEST(F2, IntersectionsAgreeWithEnumeration) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    unsigned bits = 1 + random() % 9;
    Columns a = randomVectors(random, bits, random() % 7), b = randomVectors(random, bits, random() % 7);
    auto inA = members(a), inB = members(b);
    std::set<Bits> expected;
    std::set_intersection(inA.begin(), inA.end(), inB.begin(), inB.end(), std::inserter(expected, expected.end()));
    Columns got = intersection(a, b);
    EXPECT_EQ(members(got), expected);
    EXPECT_EQ(rank(got), got.size());
  }
}

TEST(F2, ACommonComplementMeetsBothSpansInZeroAndIsAsLargeAsPossible) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 500; ++round) {
    unsigned bits = 1 + random() % 9;
    Columns a = randomVectors(random, bits, random() % 7), b = randomVectors(random, bits, random() % 7);
    Columns got = commonComplement(a, b, bits);
    EXPECT_EQ(rank(got), got.size());
    EXPECT_EQ(got.size(), bits - std::max(rank(a), rank(b)));
    EXPECT_TRUE(intersection(got, a).empty());
    EXPECT_TRUE(intersection(got, b).empty());
    Columns completed = a, missing = complement(a, bits);
    completed.insert(completed.end(), missing.begin(), missing.end());
    EXPECT_EQ(rank(completed), bits);
    EXPECT_EQ(missing.size(), bits - rank(a));
  }
}

}  // namespace
}  // namespace vortex::layout
