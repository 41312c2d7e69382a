#include "layout/memory_access.h"

#include "layout/random_layout.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace vortex::layout {
namespace {

TEST(MemoryAccess, SectorsAreDistinctThirtyTwoByteLines) {
  std::vector<uint64_t> consecutive, strided, same(32, 4096);
  for (uint64_t lane = 0; lane < 32; ++lane) {
    consecutive.push_back(4 * lane);
    strided.push_back(1024 * lane);
  }
  EXPECT_EQ(countSectors(consecutive, 4), 4u);
  EXPECT_EQ(countSectors(strided, 4), 32u);
  EXPECT_EQ(countSectors(same, 4), 1u);
  for (uint64_t& address : consecutive)
    address += 16;
  EXPECT_EQ(countSectors(consecutive, 4), 5u) << "a shifted row touches one more sector";
}

// The classic cases: padding, column access, wide vectors.
TEST(MemoryAccess, KnownSharedAccessesCostWhatTheyCost) {
  auto lanes = [](auto offset) {
    std::vector<uint64_t> result;
    for (uint64_t lane = 0; lane < 32; ++lane)
      result.push_back(offset(lane));
    return result;
  };
  EXPECT_EQ(countBanks(lanes([](uint64_t lane) { return 4 * lane; }), 4).degree, 1u);
  EXPECT_EQ(countBanks(lanes([](uint64_t lane) { return 128 * lane; }), 4).degree, 32u);
  EXPECT_EQ(countBanks(lanes([](uint64_t lane) { return 132 * lane; }), 4).degree, 1u);
  EXPECT_EQ(countBanks(lanes([](uint64_t) { return 64; }), 4).degree, 1u) << "one word is shared";
  EXPECT_EQ(countBanks(lanes([](uint64_t lane) { return 2 * lane; }), 2).degree, 1u);
  EXPECT_EQ(countBanks(lanes([](uint64_t lane) { return 8 * lane; }), 4).degree, 2u);
  BankUse wide = countBanks(lanes([](uint64_t lane) { return 16 * lane; }), 16);
  EXPECT_EQ(wide.degree, 1u);
  EXPECT_EQ(wide.wavefronts, 4u);
  EXPECT_EQ(countBanks(lanes([](uint64_t lane) { return 8 * lane; }), 8).wavefronts, 2u);
  EXPECT_EQ(countBanks(lanes([](uint64_t lane) { return 128 * lane; }), 16).wavefronts, 32u);
}

TEST(MemoryAccess, RanksGiveTheDegreeThatCountingGives) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    unsigned bytes = 1u << random() % 5;
    Columns bits;
    for (int bit = 0; bit < 5; ++bit)
      bits.push_back((random() & random() & 1023) * bytes);
    std::vector<uint64_t> offsets;
    for (Bits lane = 0; lane < 32; ++lane)
      offsets.push_back(applyColumns(bits, lane));
    ASSERT_EQ(bankDegree(bits, bytes), countBanks(offsets, bytes).degree) << "round " << round;
  }
}

TEST(MemoryAccess, TheWidestVectorIsTheLongestRunAThreadHolds) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    Layout layout = randomLayout(random, {3, 4}, 3, 4, round % 3 != 0);
    Layout memory = rowMajor({3, 4});
    VectorAccess vector = widestVector(layout, memory, 2, 16);
    // Brute force: every element's aligned run of v neighbours is in the same thread.
    unsigned expected = 1;
    std::map<Bits, std::pair<Bits, Bits>> owner;
    for (Bits reg = 0; reg < 8; ++reg)
      for (Bits lane = 0; lane < 16; ++lane)
        owner[layout.applyFlat({.reg = reg, .lane = lane})] = {lane, 0};
    for (unsigned elements = 2; elements <= 8; elements *= 2) {
      bool together = true;
      for (const auto& [place, thread] : owner)
        together &= owner.at(place / elements * elements) == thread;
      if (together)
        expected = elements;
    }
    ASSERT_EQ(vector.elements, expected) << layout.str();
    for (unsigned element = 0; element < vector.elements; ++element)
      EXPECT_EQ(layout.applyFlat({.reg = applyColumns(vector.registers, element)}), element);
  }
}

}  // namespace
}  // namespace vortex::layout
