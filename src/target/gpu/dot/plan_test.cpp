#include "target/gpu/dot/plan.h"

#include "layout/fragments.h"

#include <gtest/gtest.h>

#include <set>

namespace vortex::target::gpu::dot {
namespace {

std::vector<Problem> problems() {
  std::vector<Problem> result;
  struct Types {
    unsigned bits;
    bool isFloat;
    unsigned acc;
    bool tf32 = false;
  };
  for (Types types : {Types{16, true, 4},
                      {8, true, 4},
                      {32, true, 4},
                      {64, true, 8},
                      {8, false, 4},
                      {16, false, 2},
                      {64, false, 8},
                      {32, true, 4, true}})
    for (int64_t rows : {0, 1, 16, 17, 64, 100, 128})
      for (int64_t columns : {0, 1, 33, 64, 128, 256})
        for (unsigned threads : {0u, 128u, 256u})
          result.push_back({.elementBits = types.bits,
                            .isFloat = types.isFloat,
                            .accBytes = types.acc,
                            .tf32 = types.tf32,
                            .rows = rows,
                            .columns = columns,
                            .threads = threads});
  return result;
}

TEST(Plan, EveryProblemGetsAPlanThatFitsTheChip) {
  for (const char* name : {"sm_80", "sm_90", "apple_m1", "gfx942", "pvc"})
    for (const Problem& problem : problems()) {
      const chip::Gpu& chip = *chip::findGpu(name);
      Plan plan = choosePlan(chip, problem).value();
      EXPECT_LE(plan.threads(), chip.maxThreadsPerBlock);
      EXPECT_LE(sharedBytes(plan, problem.elementBits / 8), chip.sharedBytesPerBlock) << plan.str();
      EXPECT_EQ(plan.rows % plan.warpRows, 0u);
      EXPECT_EQ(plan.columns % plan.warpColumns, 0u);
      EXPECT_EQ(choosePlan(chip, problem), plan) << "the choice is deterministic";
    }
}

TEST(Plan, ProductsFitLittleSharedMemoryAndNoneFitsHalfAKiB) {
  for (const char* name : {"sm_80", "sm_90", "apple_m1"})
    for (const Problem& problem : problems()) {
      chip::Gpu chip = *chip::findGpu(name);
      chip.sharedBytesPerBlock = chip.sharedBytesPerCore = (problem.elementBits == 64 ? 21 : 11) * 1024;
      std::optional<Plan> plan = choosePlan(chip, problem);
      ASSERT_TRUE(plan) << name << " " << problem.elementBits;
      EXPECT_LE(sharedBytes(*plan, problem.elementBits / 8), chip.sharedBytesPerBlock) << plan->str();
      EXPECT_EQ(parsePlan(plan->str()), plan);
      chip.sharedBytesPerBlock = 512;
      EXPECT_FALSE(choosePlan(chip, problem)) << name;
    }
}

TEST(Plan, ThinProductsGetAPlanOfFewRowsThatFitsTheChip) {
  unsigned found = 0;
  for (const Problem& problem : problems()) {
    const chip::Gpu& chip = *chip::findGpu("sm_90");
    auto plan = chooseThinPlan(chip, problem);
    found += plan.has_value();
    if (!plan)
      continue;
    EXPECT_LE(plan->rows, kThinRows) << plan->str();
    EXPECT_LE(sharedBytes(*plan, problem.elementBits / 8), chip.sharedBytesPerBlock) << plan->str();
    EXPECT_EQ(plan->unit, choosePlan(chip, problem)->unit);
  }
  EXPECT_GT(found, 0u);
}

TEST(Plan, SharedAccessesOfMatrixPlansHaveNoBankConflicts) {
  std::set<std::string> seen;
  for (const Problem& problem : problems()) {
    Plan plan = choosePlan(*chip::findGpu("sm_90"), problem).value();
    unsigned bytes = problem.elementBits / 8;
    for (bool isA : {true, false})
      for (bool depthInner : {true, false}) {
        SharedTile tile = sharedTile(plan, isA, bytes, depthInner);
        if (plan.unit == Unit::Mma)
          for (const SharedAccess& access : sharedAccesses(plan, isA, tile))
            // Bytes that lie across are read every second row at a time: rows of half the banks and less meet.
            EXPECT_LE(layout::countBanks(access.lanes, access.bytes).degree,
                      bytes == 1 && !depthInner && tile.pitch < 128 ? 2u : 1u)
                << plan.str() << " " << access.what << (isA ? " A" : " B") << depthInner;
        // Every element has a place of its own.
        std::set<uint64_t> places;
        for (uint64_t x = 0; x < uint64_t(1) << tile.across; ++x)
          for (uint64_t k = 0; k < uint64_t(1) << tile.depth; ++k)
            places.insert(tile.offset(x, k));
        if (seen.insert(plan.str() + std::to_string(bytes)).second)
          EXPECT_EQ(places.size(), uint64_t(1) << (tile.across + tile.depth));
        EXPECT_LT(*places.rbegin(), tile.elements());
      }
  }
}

TEST(Plan, FragmentsAndResultsOfTheFmaUnitHaveNoBankConflicts) {
  for (const Problem& problem : problems()) {
    Plan plan = choosePlan(*chip::findGpu("sm_90"), problem).value();
    if (plan.unit != Unit::Fma)
      continue;
    for (bool isA : {true, false})
      for (bool depthInner : {true, false}) {
        SharedTile tile = sharedTile(plan, isA, problem.elementBits / 8, depthInner);
        auto accesses = sharedAccesses(plan, isA, tile);
        EXPECT_EQ(layout::countBanks(accesses[0].lanes, accesses[0].bytes).degree, 1u) << plan.str();
        // Sixteen steps of two rows do not fit the banks with rows that stay aligned to 16 bytes.
        if (depthInner && problem.elementBits == 32)
          EXPECT_LE(layout::countBanks(accesses[1].lanes, accesses[1].bytes).degree, 2u)
              << plan.str() << " " << tile.pitch;
      }
    for (const SharedAccess& access : resultAccesses(plan, 4, resultPitch(plan, 4)))
      EXPECT_EQ(layout::countBanks(access.lanes, access.bytes).degree, 1u) << plan.str();
  }
}

// ldmatrix at these addresses leaves in a lane what mma.sync expects there: composed from the layouts of both instructions.
TEST(Plan, MatrixLoadsFillTheFragmentsOfTheInstruction) {
  Plan plan{Unit::Mma, 128, 128, 64, 64, 64, 0, 3};
  for (bool isA : {true, false})
    for (bool depthInner : {true, false}) {
      SharedTile tile = sharedTile(plan, isA, 2, depthInner);
      auto lanes = sharedAccesses(plan, isA, tile)[1].lanes;
      layout::Layout dealt = layout::ldmatrix(2, !depthInner);
      layout::Layout fragment = isA ? layout::mmaA(16) : layout::mmaB(16);
      for (layout::Bits lane = 0; lane < 32; ++lane)
        for (layout::Bits reg = 0; reg < 8; ++reg) {
          auto element = dealt.apply({.reg = reg, .lane = lane});
          uint64_t row = lanes[element[0] * 8 + element[1]] / 2;
          // Two B fragments, of eight columns each, come from one load.
          auto wanted = fragment.apply({.reg = isA ? reg : reg & 3, .lane = lane});
          uint64_t x = isA ? wanted[0] : wanted[1] + (reg >> 2) * 8, k = isA ? wanted[1] : wanted[0];
          EXPECT_EQ(row + element[2], tile.offset(x, k))
              << isA << depthInner << " lane " << lane << " register " << reg;
        }
    }
}

}  // namespace
}  // namespace vortex::target::gpu::dot
