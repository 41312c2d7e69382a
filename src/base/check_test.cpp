#include "base/check.h"

#include <gtest/gtest.h>

namespace {

TEST(Check, ATrueConditionDoesNothing) { VORTEX_CHECK(1 + 1 == 2, "arithmetic %d", 2); }

TEST(CheckDeathTest, AFalseConditionPrintsItselfAndTheMessage) {
  EXPECT_DEATH(VORTEX_CHECK(1 > 2, "saw %d and %s", 7, "x"),
               "internal error: 1 > 2 at .*check_test.cpp:[0-9]+: saw 7 and x");
  EXPECT_DEATH(VORTEX_CHECK(false), "internal error: false at");
}

TEST(CheckDeathTest, TheHandlerRunsBeforeTheAbort) {
  auto fail = [] {
    vortex::base::setCheckHandler([] { std::fputs("handler ran\n", stderr); });
    VORTEX_UNREACHABLE();
  };
  EXPECT_DEATH(fail(), "handler ran");
}

}  // namespace
