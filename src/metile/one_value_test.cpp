#include "metile/one_value.h"

#include <gtest/gtest.h>

namespace {

using namespace vortex;
using namespace vortex::metile;

/// By the index of the operation, for all stores of a kernel of 64 lanes: i of the instance, l of the launch.
std::string ofOneValue(const std::string& ops) {
  source::SourceManager sources;
  const std::vector<source::FileId> files = {sources.addText("k.py", "first\n")};
  const Result<Trace> trace = parseTrace("kernel k @ 0 1 0 1 5\nthreads 64\nptr x f32 1 r\nptr out f32 1 w\nint n\n"
                                         "%0 tid\n%1 div %0 i2\n%2 param p2\n%3 pid i0\n" +
                                             ops,
                                         files, sources);
  if (!trace)
    return trace.error().message;
  std::vector<source::SourceRange> places;
  for (const Op& op : trace->ops)
    places.push_back(op.range);
  std::string text;
  for (const auto& [index, sharers] : storesOfOneValue(*trace, places))
    text += std::to_string(index - 4) + (sharers == Sharers::Instance ? "i" : "l");
  return text;
}

TEST(OneValueTest, ConstantsAndArgumentsAreOfTheLaunch) {
  EXPECT_EQ(ofOneValue("store p1 %1 f1.0 -\n"), "0l");
  EXPECT_EQ(ofOneValue("%4 mul %2 i3\nstore p1 %1 %4 -\n"), "1l");
  EXPECT_EQ(ofOneValue("loop %9 i0 %2 i1\nstore p1 %1 %2 -\nend\n"), "1l");
}

TEST(OneValueTest, WhatInstancesComputeIsTheirOwn) {
  EXPECT_EQ(ofOneValue("store p1 %1 %3 -\n"), "0i");
  EXPECT_EQ(ofOneValue("%4 load p0 %0 -\n%5 sum %4\nstore p1 %1 %5 -\n"), "2i");
  EXPECT_EQ(ofOneValue("%4 load p0 %3 -\nloop %9 i0 %2 i1\nstore p1 %1 %4 -\nend\n"), "2i");
}

TEST(OneValueTest, WhatLanesOrRoundsComputeIsNone) {
  EXPECT_EQ(ofOneValue("store p1 %1 %0 -\n"), "");
  EXPECT_EQ(ofOneValue("%4 load p0 %0 -\nstore p1 %1 %4 -\n"), "");
  EXPECT_EQ(ofOneValue("%4 load p0 %0 -\n%5 simd_sum %4\nstore p1 %1 %5 -\n"), "");
  EXPECT_EQ(ofOneValue("loop %9 i0 %2 i1\nstore p1 %1 %9 -\nend\n"), "");
  EXPECT_EQ(ofOneValue("loop %9 i0 %2 i1\n%4 load p0 %9 -\nstore p1 %1 %4 -\nend\n"), "");
  EXPECT_EQ(ofOneValue("carry %8 i0\nloop %9 i0 %2 i1\nstore p1 %1 %8 -\n%7 add %8 i1\nyield %8 %7\nend\n"), "");
  EXPECT_EQ(ofOneValue("carry %8 i0\nloop %9 i0 %2 i1\n%7 add %8 i1\nyield %8 %7\nend\nstore p1 %1 %8 -\n"), "5i");
  EXPECT_EQ(ofOneValue("carry %8 i0\nloop %9 i0 %0 i1\n%7 add %8 i1\nyield %8 %7\nend\nstore p1 %1 %8 -\n"), "");
}

TEST(OneValueTest, OtherValuesAndAtomicsInTheSameMemoryAreInTheWay) {
  EXPECT_EQ(ofOneValue("store p1 %1 f1.0 -\nstore p1 %0 f1.0 -\n"), "0l1l");
  EXPECT_EQ(ofOneValue("store p1 %1 f1.0 -\nstore p1 %0 f2.0 -\n"), "");
  EXPECT_EQ(ofOneValue("store p1 %1 f1.0 -\n%4 atomic_add p1 i0 f1.0 -\n"), "");
}

}  // namespace
