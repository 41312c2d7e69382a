#include "layout/swizzle.h"

#include "layout/fragments.h"
#include "layout/random_layout.h"

#include <gtest/gtest.h>

namespace vortex::layout {
namespace {

std::vector<uint64_t> places(const LaneAccess& access, const XorSwizzle& swizzle, unsigned elementBytes) {
  std::vector<uint64_t> result;
  for (Bits lane = 0; lane < 32; ++lane)
    result.push_back(swizzle.apply(applyColumns(access.lanes, lane)) * elementBytes);
  return result;
}

/// Lanes of a copy of rows × columns with 16 bytes each, and of ldmatrix down 8 rows.
std::pair<LaneAccess, LaneAccess> copyAndMatrix(unsigned columnBits, unsigned elementBytes) {
  unsigned vectorBits = elementBytes == 2 ? 3 : elementBytes == 4 ? 2 : 4, across = columnBits - vectorBits;
  LaneAccess copy{{}, 16}, matrix{{}, 16};
  for (unsigned bit = 0; bit < 5; ++bit)
    copy.lanes.push_back(bit < across ? Bits(1) << (vectorBits + bit) : Bits(1) << (columnBits + bit - across));
  for (unsigned bit = 0; bit < 5; ++bit)
    matrix.lanes.push_back(bit < 3    ? Bits(1) << (columnBits + bit)
                           : bit == 3 ? Bits(1) << (columnBits + 3)
                                      : Bits(1) << vectorBits);
  return {copy, matrix};
}

TEST(Swizzle, CopiesAndMatrixLoadsOfEveryRowLengthAreFreeOfConflicts) {
  for (unsigned elementBytes : {1u, 2u, 4u})
    for (unsigned rowBytes = 32; rowBytes <= 512; rowBytes *= 2) {
      unsigned columnBits = static_cast<unsigned>(std::countr_zero(rowBytes / elementBytes));
      unsigned vectorBits = static_cast<unsigned>(std::countr_zero(16 / elementBytes));
      auto [copy, matrix] = copyAndMatrix(columnBits, elementBytes);
      std::vector<LaneAccess> accesses{copy, matrix};
      SwizzleChoice choice = solveXorSwizzle(7, columnBits, vectorBits, elementBytes, accesses);
      EXPECT_EQ(choice.degrees, (std::vector<unsigned>{1, 1})) << rowBytes << " bytes a row";
      for (const LaneAccess& access : accesses)
        EXPECT_TRUE(countBanks(places(access, choice.swizzle, elementBytes), access.bytes).conflictFree());
    }
}

TEST(Swizzle, TheSolutionIsAtLeastAsGoodAsEveryCandidate) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 60; ++round) {
    unsigned rowBits = 3 + random() % 3, columnBits = 3 + random() % 4;
    std::vector<LaneAccess> accesses;
    for (int i = 0; i < 2; ++i) {
      Columns basis = randomBasis(random, rowBits + columnBits);
      basis.resize(5);
      accesses.push_back({basis, 4});
    }
    auto sumOf = [&](const XorSwizzle& swizzle) {
      unsigned sum = 0;
      for (const LaneAccess& access : accesses)
        sum += countBanks(places(access, swizzle, 4), 4).degree;
      return sum;
    };
    SwizzleChoice choice = solveXorSwizzle(rowBits, columnBits, 0, 4, accesses);
    unsigned best = sumOf(choice.swizzle);
    EXPECT_EQ(best, choice.degrees[0] + choice.degrees[1]);
    for (unsigned bits = 1; bits <= std::min(rowBits, columnBits); ++bits)
      for (unsigned base = 0; base + bits <= columnBits; ++base)
        for (unsigned shift = columnBits; shift + bits <= rowBits + columnBits; ++shift)
          EXPECT_LE(best, sumOf({shift, (uint64_t(1) << bits) - 1, base}));
  }
}

TEST(Swizzle, ASwizzleIsABijectionThatKeepsRows) {
  auto [copy, matrix] = copyAndMatrix(5, 2);
  std::vector<LaneAccess> accesses{copy, matrix};
  XorSwizzle swizzle = solveXorSwizzle(7, 5, 3, 2, accesses).swizzle;
  std::vector<bool> used(4096);
  for (uint64_t offset = 0; offset < 4096; ++offset) {
    EXPECT_EQ(swizzle.apply(offset) >> 5, offset >> 5);
    EXPECT_EQ(swizzle.apply(offset) & 7, offset & 7);
    EXPECT_FALSE(used[swizzle.apply(offset)]);
    used[swizzle.apply(offset)] = true;
  }
}

TEST(Swizzle, TheGeneralSolutionIsFreeOfConflictsForRandomPairs) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 300; ++round) {
    unsigned elementBytes = 1u << random() % 4;
    Layout a = randomLayout(random, {4, 6}, 3, 5, round % 2 == 0),
           b = randomLayout(random, {4, 6}, 3, 5, round % 3 == 0);
    auto [memory, elements] = solveSharedLayout(a, b, elementBytes);
    for (const Layout* side : {&a, &b}) {
      EXPECT_GE(widestVector(*side, memory, elementBytes).elements, elements);
      for (Bits warp = 0; warp < 4; ++warp) {
        auto offsets = laneOffsets(*side, memory, elementBytes, 0, warp);
        for (uint64_t& offset : offsets)
          offset &= ~uint64_t(elements * elementBytes - 1);
        EXPECT_TRUE(countBanks(offsets, elements * elementBytes).conflictFree()) << a.str() << "\n"
                                                                                 << b.str() << "\n"
                                                                                 << memory.str();
      }
    }
  }
}

}  // namespace
}  // namespace vortex::layout
