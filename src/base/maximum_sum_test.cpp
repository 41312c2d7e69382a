#include "base/fresh_seed.h"
#include "base/maximum_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace vortex::base {
namespace {

/// Plain f32.
struct Floats {
  using Value = float;
  float sub(float a, float b) { return a - b; }
  float mul(float a, float b) { return a * b; }
  float add(float a, float b) { return a + b; }
  float exp(float a) { return std::exp(a); }
  float abs(float a) { return std::fabs(a); }
  float neg(float a) { return -a; }
  bool equal(float a, float b) { return a == b; }
  bool less(float a, float b) { return a < b; }
  float select(bool condition, float a, float b) { return condition ? a : b; }
  float number(double a) { return static_cast<float>(a); }
};

struct Pair {
  float maximum, sum = 0;
};

Pair addAll(float start, const std::vector<float>& elements, size_t group) {
  Floats floats;
  MaximumSum<Floats> algebra(floats);
  Pair pair{start};
  for (size_t i = 0; i < elements.size(); i += group) {
    if (group == 1) {
      pair.sum = algebra.add(pair.maximum, pair.sum, elements[i]);
      pair.maximum = std::fmax(pair.maximum, elements[i]);
      continue;
    }
    float high = pair.maximum;
    for (size_t k = i; k < std::min(i + group, elements.size()); ++k)
      high = std::fmax(high, elements[k]);
    float sum = pair.sum * algebra.scale(pair.maximum, high);
    for (size_t k = i; k < std::min(i + group, elements.size()); ++k)
      sum += algebra.scale(elements[k], high);
    pair = {high, sum};
  }
  return pair;
}

float totalOf(Pair pair, float bound) {
  Floats floats;
  return MaximumSum<Floats>(floats).total(pair.maximum, pair.sum, bound);
}

double inTwoPasses(const std::vector<float>& elements, double bound) {
  double sum = 0;
  for (const float x : elements)
    sum += std::exp(x - bound);
  return sum;
}

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(MaximumSumTest, OnePassStaysWithinTheStatedErrorOfTwo) {
  std::mt19937_64 random(base::freshSeed());
  for (int round = 0; round < 300; ++round) {
    const float spread = std::ldexp(1.0f, static_cast<int>(random() % 12) - 3),
                shift = static_cast<float>(random() % 2000) - 1000;
    std::vector<float> elements(1 + random() % 700);
    std::normal_distribution<float> normal(shift, spread);
    for (float& x : elements)
      x = normal(random);
    if (round % 3 == 0)
      std::sort(elements.begin(), elements.end());  // the maximum grows at every element
    const float start = round % 2 ? -1e38f : -kInf;
    const double bound = *std::max_element(elements.begin(), elements.end()), expected = inTwoPasses(elements, bound);
    const double allowed =
        4 * static_cast<double>(elements.size() + 1) * std::numeric_limits<float>::epsilon() * expected;
    for (const size_t group : {1, 2, 5})
      EXPECT_NEAR(totalOf(addAll(start, elements, group), static_cast<float>(bound)), expected, allowed);
  }
}

TEST(MaximumSumTest, ABoundAboveAllElementsScalesTheSum) {
  const std::vector<float> elements = {1, 3, 2};
  EXPECT_NEAR(totalOf(addAll(-kInf, elements, 1), 5), inTwoPasses(elements, 5), 1e-6);
  EXPECT_NEAR(totalOf(addAll(4, elements, 1), 5), inTwoPasses(elements, 5), 1e-6) << "the maximum starts above them";
}

TEST(MaximumSumTest, WithoutElementsTheSumIsZeroEvenBesideInfinities) {
  EXPECT_EQ(totalOf({-kInf}, -kInf), 0);
  EXPECT_EQ(totalOf({-kInf}, 3), 0);
  EXPECT_EQ(totalOf({-1e38f}, kInf), 0);
}

TEST(MaximumSumTest, ElementsOfMinusInfinityBeforeOthersAddNothing) {
  for (const size_t group : {1, 2}) {
    EXPECT_EQ(totalOf(addAll(-kInf, {-kInf, -kInf, 2, -kInf}, group), 2), 1);
    EXPECT_EQ(totalOf(addAll(-kInf, {-kInf, -kInf}, group), 2), 0) << "another lane has the maximum";
    EXPECT_EQ(totalOf(addAll(-1e38f, {-kInf, -kInf}, group), -1e38f), 0);
  }
}

/// Chunks of `group` elements, with a product by 2 carried along.
std::pair<float, float> inChunks(const std::vector<float>& elements, size_t group) {
  Floats floats;
  MaximumSum<Floats> algebra(floats);
  Pair pair{-kInf};
  float product = 0;
  for (size_t i = 0; i < elements.size(); i += group) {
    const size_t end = std::min(i + group, elements.size());
    float high = pair.maximum;
    for (size_t k = i; k < end; ++k)
      high = std::isnan(elements[k]) || std::isnan(high) ? NAN : std::max(high, elements[k]);
    const float shift = algebra.shift(high), scale = algebra.shifted(pair.maximum, shift);
    float sum = 0;
    for (size_t k = i; k < end; ++k)
      sum += algebra.shifted(elements[k], shift);
    product = product * scale + sum * 2;
    pair = {high, pair.sum * scale + sum};
  }
  return {algebra.closed(pair.maximum, pair.sum), product};
}

TEST(MaximumSumTest, ChunksGiveTheSumOfTwoPassesAndProductsKeepItsScale) {
  std::mt19937_64 random(base::freshSeed());
  for (int round = 0; round < 300; ++round) {
    std::vector<float> elements(1 + random() % 300);
    std::normal_distribution<float> normal(static_cast<float>(random() % 200) - 100,
                                           std::ldexp(1.0f, int(random() % 9) - 3));
    for (float& x : elements)
      x = random() % 5 == 0 ? -kInf : normal(random);
    elements[random() % elements.size()] = normal(random);
    const double expected = inTwoPasses(elements, *std::max_element(elements.begin(), elements.end()));
    for (const size_t group : {1, 3, 64}) {
      const auto [sum, product] = inChunks(elements, group);
      EXPECT_NEAR(sum, expected, 1e-6 * static_cast<double>(elements.size() + 1) * expected);
      EXPECT_NEAR(product, 2 * sum, 1e-6 * static_cast<double>(elements.size() + 1) * expected);
    }
  }
  for (const std::vector<float>& elements :
       {std::vector{-kInf, -kInf}, {1.0f, kInf, 2.0f}, {1.0f, NAN, 2.0f}, {kInf, 1.0f, 1.0f}})
    for (const size_t group : {1, 2, 3})
      EXPECT_TRUE(std::isnan(inChunks(elements, group).first));
}

TEST(MaximumSumTest, WhatIsNaNInTwoPassesIsNaNInOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const size_t group : {1, 2}) {
    EXPECT_TRUE(std::isnan(totalOf(addAll(-kInf, {-kInf, -kInf}, group), -kInf)));
    EXPECT_TRUE(std::isnan(totalOf(addAll(-kInf, {1, kInf, 2}, group), kInf)));
    EXPECT_TRUE(std::isnan(totalOf(addAll(-kInf, {1, nan, 2}, group), 2)));
  }
}

}  // namespace
}  // namespace vortex::base
