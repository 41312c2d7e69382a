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

TEST_F(HazardsTest, SharedBytesAreReusedOnlyBehindABarrier) {
  SharedMemory memory(hazards);
  {
    SharedScope scope(memory);
    SharedMemory::Piece first = memory.allocate(100);
    EXPECT_EQ(first.offset, 0);
    hazards.write(first.root);
  }
  SharedMemory::Piece second = memory.allocate(40, 32);
  EXPECT_EQ(second.offset, 0);
  EXPECT_EQ(barriers, 1u);
  SharedMemory::Piece third = memory.allocate(8, 32);
  EXPECT_EQ(third.offset, 64);
  EXPECT_EQ(barriers, 1u);
  EXPECT_EQ(memory.peak(), 100);
}

}  // namespace
}  // namespace vortex::target::gpu
