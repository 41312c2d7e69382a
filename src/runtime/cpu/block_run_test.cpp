#include "runtime/cpu/block_run.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace vortex::cpu {
namespace {

/// What the code of a test's blocks notes and does; blocks run on threads that know nothing of the test.
struct Record {
  std::mutex mutex;
  std::vector<std::array<uint32_t, 3>> blocks;
  std::vector<uint32_t> faultOf;  ///< by number of block, x fastest; 0: none
};
Record* record = nullptr;

uint32_t note(const uint64_t*, const artifact::CpuBlock* block) {
  const std::lock_guard lock(record->mutex);
  record->blocks.push_back({block->id[0], block->id[1], block->id[2]});
  return record->faultOf[block->id[0] + block->grid[0] * (block->id[1] + block->grid[1] * block->id[2])];
}

struct Grid {
  hal::Launch launch{};
  artifact::Phase described{};
  hal::LaunchPhase phase{};

  explicit Grid(std::array<uint32_t, 3> extents) {
    phase.phase = &described;
    phase.blocks = 1;
    for (size_t axis = 0; axis < 3; ++axis) {
      phase.grid[axis] = extents[axis];
      phase.blocks *= extents[axis];
    }
  }

  uint32_t run(BlockRun::Order order, uint32_t threads) {
    Workers workers(threads);
    PhaseHistory history;
    return BlockRun(launch, phase, &note, {}, order).run(workers, history);
  }
};

class BlockOrder : public testing::TestWithParam<BlockRun::Order> {};

TEST_P(BlockOrder, EveryBlockRunsOnceAndTheFirstFaultOfTheGridIsTheLaunchs) {
  std::mt19937 random(testing::UnitTest::GetInstance()->random_seed());
  for (int round = 0; round < 60; ++round) {
    const auto upTo = [&](uint32_t most) { return 1 + static_cast<uint32_t>(random()) % most; };
    Grid grid({upTo(40), upTo(40), upTo(3)});
    Record known;
    record = &known;
    known.faultOf.assign(grid.phase.blocks, 0);
    ASSERT_EQ(grid.run(GetParam(), upTo(4)), 0u);
    std::ranges::sort(known.blocks);
    ASSERT_EQ(known.blocks.size(), grid.phase.blocks);
    ASSERT_EQ(std::ranges::adjacent_find(known.blocks), known.blocks.end());
    for (uint32_t fault = 1; fault < 6; ++fault)
      known.faultOf[random() % known.faultOf.size()] = fault;
    const uint32_t first = *std::ranges::find_if(known.faultOf, [](uint32_t code) { return code != 0; });
    ASSERT_EQ(grid.run(GetParam(), upTo(4)), first);
  }
}

TEST(BlockRun, InBandsTheBlocksOfAColumnFollowEachOther) {
  Grid grid({5, 40, 2});
  Record known;
  record = &known;
  known.faultOf.assign(grid.phase.blocks, 0);
  ASSERT_EQ(grid.run(BlockRun::Order::Bands, 1), 0u);
  size_t together = 0;
  for (size_t i = 1; i < known.blocks.size(); ++i)
    together += known.blocks[i][0] == known.blocks[i - 1][0] && known.blocks[i][1] == known.blocks[i - 1][1] + 1;
  EXPECT_GE(together, known.blocks.size() * 3 / 4);
}

INSTANTIATE_TEST_SUITE_P(All, BlockOrder, testing::Values(BlockRun::Order::Rows, BlockRun::Order::Bands));

}  // namespace
}  // namespace vortex::cpu
