#include "base/fresh_seed.h"
#include "base/narrow_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace vortex::base {
namespace {

/// Nearest of all encodings by search; ties to the even pattern. Shares no code with encodeNarrow.
uint16_t nearest(NarrowFormat format, double value) {
  const int bits = 1 + format.exponentBits + format.mantissaBits;
  double bestDistance = INFINITY;
  uint16_t best = 0;
  for (uint32_t pattern = 0; pattern < (1u << (bits - 1)); ++pattern) {
    double candidate = decodeNarrow(format, static_cast<uint16_t>(pattern));
    if (std::isnan(candidate) || std::isinf(candidate))
      continue;
    double distance = std::fabs(candidate - std::fabs(value));
    if (distance < bestDistance || (distance == bestDistance && pattern % 2 == 0)) {
      bestDistance = distance;
      best = static_cast<uint16_t>(pattern);
    }
  }
  return static_cast<uint16_t>(best | (std::signbit(value) ? 1 << (bits - 1) : 0));
}

TEST(NarrowFloat, everyPatternSurvivesARoundTrip) {
  for (NarrowFormat format : {kF16, kBF16, kF8E4M3, kF8E5M2}) {
    const int bits = 1 + format.exponentBits + format.mantissaBits;
    for (uint32_t pattern = 0; pattern < (1u << bits); ++pattern) {
      double value = decodeNarrow(format, static_cast<uint16_t>(pattern));
      if (!std::isnan(value)) {
        EXPECT_EQ(encodeNarrow(format, value), pattern);
      }
    }
  }
}

TEST(NarrowFloat, roundsToTheNearestWithTiesToEven) {
  std::mt19937_64 random(base::freshSeed());
  for (NarrowFormat format : {kF16, kF8E4M3, kF8E5M2}) {
    double highest =
        format.hasInfinity
            ? decodeNarrow(format, static_cast<uint16_t>(((1 << format.exponentBits) - 1) << format.mantissaBits) - 1)
            : 448;
    for (int i = 0; i < 300; ++i) {
      double value = std::ldexp(static_cast<double>(random() % 4097) - 2048, -static_cast<int>(random() % 30));
      if (std::fabs(value) > highest)
        continue;
      EXPECT_EQ(encodeNarrow(format, value), nearest(format, value)) << value;
    }
  }
}

TEST(NarrowFloat, overflowIsInfinityOrNan) {
  EXPECT_EQ(decodeNarrow(kF16, encodeNarrow(kF16, 65520)), INFINITY);
  EXPECT_EQ(decodeNarrow(kF16, encodeNarrow(kF16, 65519)), 65504);
  EXPECT_TRUE(std::isnan(decodeNarrow(kF8E4M3, encodeNarrow(kF8E4M3, 1000))));
  EXPECT_EQ(decodeNarrow(kF8E4M3, encodeNarrow(kF8E4M3, -448)), -448);
  EXPECT_EQ(decodeNarrow(kBF16, encodeNarrow(kBF16, -1e39)), -INFINITY);
}

}  // namespace
}  // namespace vortex::base
