#include "size/message.h"

#include <gtest/gtest.h>

#include <array>

namespace vortex::size {
namespace {

TEST(SizeMessage, NumbersWithoutASignAreMarked) {
  EXPECT_EQ(fillMessage("{0} of {1}, {1u} and {0u}", std::array<int64_t, 2>{7, -1}),
            "7 of -1, 18446744073709551615 and 7");
}

}  // namespace
}  // namespace vortex::size
