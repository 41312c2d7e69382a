#include "layout/fragments.h"

#include <gtest/gtest.h>

namespace vortex::layout {
namespace {

using Coordinate = std::vector<Bits>;

// The formulas of the PTX ISA, section "Warp-level matrix instructions", written down as they stand there.
TEST(Fragments, AgreeWithTheFormulasOfThePtxIsa) {
  for (Bits lane = 0; lane < 32; ++lane) {
    Bits group = lane >> 2, thread = lane % 4;
    for (Bits i = 0; i < 8; ++i) {
      Bits row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
      Bits column = thread * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      EXPECT_EQ(mmaA(16).apply({.reg = i, .lane = lane}), (Coordinate{row, column}));
    }
    for (Bits i = 0; i < 4; ++i) {
      EXPECT_EQ(mmaB(16).apply({.reg = i, .lane = lane}), (Coordinate{thread * 2 + (i & 1) + (i >= 2 ? 8 : 0), group}));
      EXPECT_EQ(mmaC().apply({.reg = i, .lane = lane}), (Coordinate{i < 2 ? group : group + 8, thread * 2 + (i & 1)}));
      Bits row = i == 0 || i == 2 ? group : group + 8, column = i < 2 ? thread : thread + 4;
      EXPECT_EQ(mmaA(32).apply({.reg = i, .lane = lane}), (Coordinate{row, column}));
    }
    for (Bits i = 0; i < 2; ++i)
      EXPECT_EQ(mmaB(32).apply({.reg = i, .lane = lane}), (Coordinate{i == 0 ? thread : thread + 4, group}));
    for (Bits i = 0; i < 16; ++i) {
      Bits row = i < 4 || (i >= 8 && i < 12) ? group : group + 8;
      EXPECT_EQ(mmaA(8).apply({.reg = i, .lane = lane}), (Coordinate{row, thread * 4 + (i & 3) + (i >= 8 ? 16 : 0)}));
    }
    for (Bits i = 0; i < 8; ++i)
      EXPECT_EQ(mmaB(8).apply({.reg = i, .lane = lane}), (Coordinate{thread * 4 + (i & 3) + (i >= 4 ? 16 : 0), group}));
    EXPECT_EQ(mmaF64A().apply({.lane = lane}), (Coordinate{group, thread}));
    EXPECT_EQ(mmaF64B().apply({.lane = lane}), (Coordinate{thread, group}));
    for (Bits i = 0; i < 2; ++i)
      EXPECT_EQ(mmaF64C().apply({.reg = i, .lane = lane}), (Coordinate{group, thread * 2 + i}));
  }
}

TEST(Fragments, HoldEveryElementOnce) {
  for (const Layout& layout : {mmaA(8), mmaA(16), mmaA(32), mmaB(8), mmaB(16), mmaB(32), mmaC(), mmaF64A(), mmaF64B(),
                               mmaF64C(), ldmatrix(2, false), ldmatrix(2, true), ldmatrix(1, true)})
    EXPECT_TRUE(layout.isInjective() && layout.isSurjective()) << layout.str();
}

TEST(Fragments, LdmatrixDealsRowsOrColumnsToLanes) {
  for (Bits lane = 0; lane < 32; ++lane) {
    for (Bits i = 0; i < 8; ++i) {
      Bits outer = lane / 4, inner = 2 * (lane % 4) + (i & 1);
      EXPECT_EQ(ldmatrix(2, false).apply({.reg = i, .lane = lane}), (Coordinate{i >> 1, outer, inner}));
      EXPECT_EQ(ldmatrix(2, true).apply({.reg = i, .lane = lane}), (Coordinate{i >> 1, inner, outer}));
    }
    EXPECT_EQ(ldmatrixAddresses(2).apply({.lane = lane}), (Coordinate{lane / 8, lane % 8}));
    EXPECT_EQ(ldmatrixAddresses(1).apply({.lane = lane}), (Coordinate{lane / 8 % 2, lane % 8}));
  }
}

}  // namespace
}  // namespace vortex::layout
