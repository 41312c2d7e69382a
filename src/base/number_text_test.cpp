#include "base/fresh_seed.h"
#include "base/number_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

namespace vortex::base {
namespace {

TEST(NumberText, FloatsShowThatTheyAreFloats) {
  EXPECT_EQ(floatText(3.0), "3.0");
  EXPECT_EQ(floatText(-0.0f), "-0.0");
  EXPECT_EQ(floatText(1e-8f), "1e-08");
  EXPECT_EQ(floatText(std::numeric_limits<float>::infinity()), "inf");
  EXPECT_EQ(floatText(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(floatText(-std::nan("")), "nan");
}

template <typename T> T read(const std::string& text) {
  T value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

TEST(NumberText, ReadsBackAsTheSameNumberOfItsType) {
  std::mt19937_64 random(base::freshSeed());
  for (int i = 0; i < 1000; ++i) {
    const auto wide = std::bit_cast<double>(random());
    const auto narrow = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(wide))
      EXPECT_EQ(read<double>(floatText(wide)), wide);
    if (std::isfinite(narrow))
      EXPECT_EQ(read<float>(floatText(narrow)), narrow);
  }
}

TEST(NumberText, AnF32HasTheTextOfItsTypeAndNotOfTheF64ItEquals) {
  EXPECT_EQ(floatText(0.1f), "0.1");
  EXPECT_EQ(floatText(double(0.1f)), "0.10000000149011612");
}

}  // namespace
}  // namespace vortex::base
