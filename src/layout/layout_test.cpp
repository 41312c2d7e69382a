#include "layout/random_layout.h"

#include <gtest/gtest.h>

#include <map>

namespace vortex::layout {
namespace {

std::vector<Index> allIndices(const Layout& layout) {
  std::vector<Index> result;
  for (Bits warp = 0; warp < Bits(1) << layout.inBits(In::Warp); ++warp)
    for (Bits lane = 0; lane < Bits(1) << layout.inBits(In::Lane); ++lane)
      for (Bits reg = 0; reg < Bits(1) << layout.inBits(In::Register); ++reg)
        result.push_back({.reg = reg, .lane = lane, .warp = warp});
  return result;
}

TEST(Layout, ABlockedLayoutIsWhatItsArithmeticSays) {
  // 2×4 registers, 8×4 lanes, 2 warps down: 32 × 16.
  Layout blocked({5, 4});
  blocked.unit(In::Register, 1, 2).unit(In::Register, 0, 1).unit(In::Lane, 1, 2, 2).unit(In::Lane, 0, 3, 1);
  blocked.unit(In::Warp, 0, 1, 4);
  for (const Index& at : allIndices(blocked)) {
    Bits row = (at.reg >> 2) + 2 * (at.lane >> 2) + 16 * at.warp, column = (at.reg & 3) + 4 * (at.lane & 3);
    EXPECT_EQ(blocked.apply(at), (std::vector<Bits>{row, column}));
  }
}

TEST(Layout, FindIsTheInverseOfApply) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    Layout layout = randomLayout(random, {unsigned(random() % 5), unsigned(2 + random() % 5)}, 2, 3, round % 2 == 0);
    for (const Index& at : allIndices(layout))
      ASSERT_EQ(layout.find(layout.apply(at)), at);
  }
}

TEST(Layout, CopiesAreFoundAtOnePlaceThatHoldsTheElement) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    Layout layout = randomLayout(random, {3, 3}, 2, 4, false);
    layout.repeat(In::Lane, 1).base(In::Register, layout.unflat(random() & 63));
    EXPECT_FALSE(layout.isInjective());
    for (Bits element = 0; element < 64; ++element)
      ASSERT_EQ(layout.applyFlat(layout.findFlat(element)), element);
  }
}

TEST(Layout, ComposeTellsWhereAnElementMoves) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<unsigned> dims{unsigned(1 + random() % 4), unsigned(4 + random() % 3)};
    Layout from = randomLayout(random, dims, 2, 3, false), to = randomLayout(random, dims, 1, 3, round % 2 == 0);
    std::map<std::vector<Bits>, Index> places;
    for (const Index& at : allIndices(to))
      places[to.apply(at)] = at;
    Transfer transfer = compose(to, from);
    for (const Index& at : allIndices(from))
      ASSERT_EQ(transfer.apply(at), places.at(from.apply(at)));
  }
}

TEST(Layout, ProductsRepeatTheInnerTileAndQuotientsUndoThem) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 200; ++round) {
    Layout inner = randomLayout(random, {2, 3}, 2, 2, false), outer = randomLayout(random, {3, 1}, 1, 1, false);
    Layout both = product(inner, outer);
    for (const Index& small : allIndices(inner))
      for (const Index& large : allIndices(outer)) {
        Index joined{.reg = small.reg | large.reg << 2,
                     .lane = small.lane | large.lane << 2,
                     .warp = small.warp | large.warp << 1};
        auto low = inner.apply(small), high = outer.apply(large);
        ASSERT_EQ(both.apply(joined), (std::vector<Bits>{low[0] | high[0] << 2, low[1] | high[1] << 3}));
      }
    EXPECT_EQ(quotient(both, inner), outer);
    Layout other = randomLayout(random, {2, 3}, 2, 2, false);
    if (other != inner)
      EXPECT_EQ(quotient(both, other), std::nullopt);
  }
}

TEST(Layout, TransposeSwapsCoordinates) {
  std::mt19937_64 random(5);
  Layout layout = randomLayout(random, {2, 4}, 2, 3, false);
  std::vector<unsigned> swap{1, 0};
  Layout turned = transpose(layout, swap);
  for (const Index& at : allIndices(layout)) {
    auto before = layout.apply(at), after = turned.apply(at);
    EXPECT_EQ(before[0], after[1]);
    EXPECT_EQ(before[1], after[0]);
  }
}

}  // namespace
}  // namespace vortex::layout
