// Against the definitions: a block dominates another if without it nothing leads there.
#include "lang/flow/graph/structure.h"
#include "lang/flow/testing/graph_of.h"
#include "lang/flow/testing/random_kernel.h"

namespace vortex::lang::flow {
namespace {

std::vector<bool> reached(const Graph& graph, BlockId start, BlockId without, bool backward) {
  std::vector<bool> seen(graph.blocks.size());
  std::vector<BlockId> pending;
  const auto visit = [&](BlockId block) {
    if (block != without && !seen[indexOf(block)]) {
      seen[indexOf(block)] = true;
      pending.push_back(block);
    }
  };
  visit(start);
  while (!pending.empty()) {
    const BlockId at = pending.back();
    pending.pop_back();
    for (BlockId next : backward ? graph[at].predecessors : graph[at].successors)
      visit(next);
  }
  return seen;
}

TEST(Structure, DominatorsAreWhatEveryWayPasses) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    testing::GraphOf made(testing::randomKernel(seed).text);
    const Graph& graph = made.graph;
    ASSERT_FALSE(graph.blocks.empty());
    const Structure structure(graph);
    const auto count = static_cast<uint32_t>(graph.blocks.size());
    BlockId end = kNoBlock;
    for (uint32_t i = 0; i < count; ++i)
      if (graph.blocks[i].successors.empty())
        end = BlockId{i};
    ASSERT_NE(end, kNoBlock);
    for (uint32_t a = 0; a < count; ++a) {
      const auto forward = reached(graph, BlockId{0}, BlockId{a}, false),
                 backward = reached(graph, end, BlockId{a}, true);
      for (uint32_t b = 0; b < count; ++b) {
        ASSERT_EQ(structure.dominates(BlockId{a}, BlockId{b}), !forward[b]) << a << " " << b << "\n" << made.dump();
        ASSERT_EQ(structure.postDominates(BlockId{a}, BlockId{b}), !backward[b]) << a << " " << b << "\n"
                                                                                 << made.dump();
      }
    }
  }
}

TEST(Structure, AnEndlessLoopEndsAtItsHeader) {
  testing::GraphOf made(R"(
@launch(grid = [1], block = 32)
kernel k(x: &mut Tensor<u32, [32]>, n: u32) {
  if n > 3 { loop { x[thread.local_id] += 1 } }
  x[thread.local_id] = 1
})");
  const Structure structure(made.graph);
  EXPECT_EQ(structure.postDominator(BlockId{0}), kNoBlock) << made.dump();
  EXPECT_EQ(structure.controls(made.graph.loops[0].header).size(), 1u);
}

}  // namespace
}  // namespace vortex::lang::flow
