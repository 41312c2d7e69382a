#include "base/result.h"

#include <gtest/gtest.h>
#include <memory>

namespace {

using vortex::base::Error;
using vortex::base::Result;

TEST(Result, HoldsAValueThatCanBeMovedOut) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  ASSERT_TRUE(result);
  std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 5);
}

TEST(Result, HoldsAnError) {
  Result<int> result(Error{"need 8 bytes, have 4"});
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "need 8 bytes, have 4");
}

TEST(Result, OfVoidIsSuccessByDefault) {
  EXPECT_TRUE(Result<void>().ok());
  EXPECT_FALSE(Result<void>(Error{"x"}).ok());
}

TEST(ResultDeathTest, ValueOfAnErrorAborts) {
  Result<int> result(Error{"the reason"});
  EXPECT_DEATH((void)result.value(), "the reason");
}

}  // namespace
