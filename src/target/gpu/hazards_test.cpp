#include "target/gpu/shared_memory.h"

#include <gtest/gtest.h>

namespace vortex::target::gpu {
namespace {

using Kind = Hazards::Kind;

struct HazardsTest : testing::Test {
  unsigned barriers = 0;
  Hazards hazards{[this] { ++barriers; }};
  int a = 0, b = 0;  ///< their addresses name two pieces of memory
};

TEST_F(HazardsTest, BlockCodeThatReadsWhatItWroteNeedsOneBarrier) {
  hazards.write(&a);
  hazards.read(&a);
  hazards.read(&a);
  EXPECT_EQ(barriers, 1u);
}

TEST_F(HazardsTest, ReadsDoNotConflictAndNeitherDoDifferentPieces) {
  hazards.read(&a);
  hazards.read(&a, Kind::Region);
  hazards.write(&b);
  EXPECT_EQ(barriers, 0u);
}

TEST_F(HazardsTest, RegionsAreTheProgramsToOrder) {
  hazards.write(&a, Kind::Region);
  hazards.read(&a, Kind::Region);
  hazards.write(&a, Kind::Region);
  EXPECT_EQ(barriers, 0u);
  hazards.read(&a);  // uniform code reads what threads wrote
  EXPECT_EQ(barriers, 1u);
}

TEST_F(HazardsTest, AWriteWaitsForReadsOfBlockCode) {
  hazards.read(&a);
  hazards.write(&a, Kind::Region);
  EXPECT_EQ(barriers, 1u);
}

TEST_F(HazardsTest, ABarrierOfTheProgramOrdersEverything) {
  hazards.write(&a);
  hazards.write(&b, Kind::Region);
  hazards.barrier();
  hazards.read(&a);
  hazards.read(&b);
  EXPECT_EQ(barriers, 1u);
}

TEST_F(HazardsTest, CopiesIntoWindowsThatAreApartRunSideBySide) {
  const auto apart = [](mlir::Value, mlir::Value) { return true; };
  const auto touching = [](mlir::Value, mlir::Value) { return false; };
  hazards.copy(&a, {}, touching);
  hazards.copy(&b, {}, touching);
  hazards.copy(&a, {}, apart);
  EXPECT_EQ(barriers, 0u);
  hazards.copy(&a, {}, touching);
  EXPECT_EQ(barriers, 1u);
  hazards.read(&b);
  EXPECT_EQ(barriers, 1u);
  hazards.read(&a);
  EXPECT_EQ(barriers, 2u);
  hazards.copy(&a, {}, apart);  // it is still being read
  EXPECT_EQ(barriers, 3u);
}

TEST_F(HazardsTest, CopiesOfEitherBranchArePendingAfterBoth) {
  const auto touching = [](mlir::Value, mlir::Value) { return false; };
  Hazards::State before = hazards.state();
  hazards.copy(&a, {}, touching);
  Hazards::State then = hazards.state();
  hazards.restore(before);
  hazards.barrier();
  hazards.merge(then);
  EXPECT_EQ(barriers, 1u);
  hazards.copy(&a, {}, touching);
  EXPECT_EQ(barriers, 2u);
}

TEST_F(HazardsTest, MergedBranchesKeepWhatEitherLeaves) {
  Hazards::State before = hazards.state();
  hazards.write(&a);
  Hazards::State then = hazards.state();
  hazards.restore(before);
  hazards.write(&b);
  hazards.merge(then);
  EXPECT_TRUE(hazards.isPending(&a));
  EXPECT_TRUE(hazards.isPending(&b));
}

uint32_t noLine() { return 0; }

TEST_F(HazardsTest, SharedBytesAreReusedOnlyBehindABarrier) {
  SharedMemory memory(hazards, 1 << 20, noLine);
  {
    SharedScope scope(memory);
    SharedMemory::Piece first = memory.take(100, 16, "first");
    EXPECT_EQ(first.offset, 0);
    hazards.write(first.root);
  }
  SharedMemory::Piece second = memory.take(40, 32, "second");
  EXPECT_EQ(second.offset, 0);
  EXPECT_EQ(barriers, 1u);
  SharedMemory::Piece third = memory.take(8, 32, "third");
  EXPECT_EQ(third.offset, 64);
  EXPECT_EQ(barriers, 1u);
  EXPECT_EQ(memory.peak(), 100);
}

TEST_F(HazardsTest, RetiredBytesAreReusedOnlyWhereTheBlockHasNoOthers) {
  constexpr int64_t kBytes = 1024;
  SharedMemory memory(hazards, SharedMemory::kScratch + 3 * kBytes, noLine);
  SharedMemory::Piece first = memory.take(kBytes, 16, "first"), second = memory.take(kBytes, 16, "second");
  hazards.write(first.root);
  memory.retire(first.root);
  EXPECT_EQ(memory.take(kBytes, 16, "third").offset, 2 * kBytes);
  EXPECT_EQ(barriers, 0u);
  EXPECT_TRUE(memory.hasRoomForTile(kBytes));
  EXPECT_FALSE(memory.hasRoomForTile(2 * kBytes));
  EXPECT_EQ(memory.take(kBytes, 16, "fourth").offset, 0);
  EXPECT_EQ(barriers, 1u);
  EXPECT_FALSE(memory.makeRoom({kBytes, 2 * kBytes}, 16));
  memory.retire(second.root);
  EXPECT_TRUE(memory.makeRoom({kBytes, kBytes}, 16));
  EXPECT_EQ(memory.peak(), 3 * kBytes);
}

}  // namespace
}  // namespace vortex::target::gpu
