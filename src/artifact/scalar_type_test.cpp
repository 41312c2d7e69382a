#include "artifact/artifact.h"

#include <gtest/gtest.h>

namespace vortex::artifact {
namespace {

TEST(ScalarType, NamesAreFoundAgain) {
  for (int i = 0; i <= static_cast<int>(ScalarType::F64); ++i) {
    const auto type = static_cast<ScalarType>(i);
    EXPECT_EQ(scalarTypeNamed(name(type)), type) << name(type);
  }
  EXPECT_EQ(scalarTypeNamed("f33"), std::nullopt);
  EXPECT_EQ(scalarTypeNamed(""), std::nullopt);
}

TEST(ScalarType, SmallNumbersKeepTheirValueInEveryFloat) {
  for (int i = static_cast<int>(ScalarType::F8E4M3); i <= static_cast<int>(ScalarType::F64); ++i) {
    const auto type = static_cast<ScalarType>(i);
    ASSERT_TRUE(isFloat(type)) << name(type);
    for (const double value : {0.0, 1.0, -2.5, 0.015625, 96.0}) {
      EXPECT_EQ(floatValue(type, floatBits(type, value)), value) << name(type);
      if (byteSize(type) < 8) {
        EXPECT_EQ(floatBits(type, value) >> (8 * byteSize(type)), 0U) << name(type);
      }
    }
  }
  EXPECT_FALSE(isFloat(ScalarType::I64));
}

}  // namespace
}  // namespace vortex::artifact
