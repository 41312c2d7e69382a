#include "lang/flow/solve/solve.h"

#include <set>

#include "lang/flow/check/iterations.h"
#include "lang/flow/testing/graph_of.h"

namespace vortex::lang::flow {
namespace {

using testing::GraphOf;

/// May the shared tensor be unwritten?
struct Unwritten {
  using State = bool;
  static constexpr Direction kDirection = Direction::Forward;
  const Graph& graph;
  State start() const { return true; }
  void step(StepId, const Step& step, State& state) const {
    for (const Access& access : graph.accessesOf(step))
      if (access.mode == AccessMode::Write && graph[access.place].storage == Storage::Shared)
        state = false;
  }
  bool edge(BlockId, uint32_t, State&) const { return true; }
  void join(State& into, const State& other, bool isDivergent) const {
    into = isDivergent ? into && other : into || other;
  }
};

bool mayReadUnwritten(const GraphOf& made, const Contexts& contexts) {
  const auto solution = solve(made.graph, Unwritten{made.graph}, contexts);
  bool out = false;
  solution.forEach([&](StepId step, bool state, Context) {
    for (const Access& access : made.graph.accessesOf(made.graph[step]))
      out = out || (state && access.mode == AccessMode::Read && made.graph[access.place].storage == Storage::Shared);
  });
  return out;
}

std::string kernelOf(const std::string& body) {
  return "@launch(grid = [1], block = 32)\nkernel k(x: &mut Tensor<u32, [32]>, n: u32) {\n  let t = thread.local_id\n"
         "  let s: Tensor<u32, [32]> @shared\n" +
         body + "\n}\n";
}

TEST(Solve, TheFirstIterationIsApartWherePeeled) {
  GraphOf made(kernelOf("for k in 0..4 { if k == 0 { s[t] = n; sync_block() }\n x[t] = s[t] }"));
  EXPECT_TRUE(mayReadUnwritten(made, Contexts::plain(made.graph)));
  EXPECT_FALSE(mayReadUnwritten(made, Contexts::peel(made.graph)));
}

TEST(Solve, PeelingFollowsVariablesAndBeginsThatAreNoNumbers) {
  GraphOf counted(
      kernelOf("var k = 0usize\n while k < 9 { if k == 0 { s[t] = n; sync_block() }\n x[t] = s[t]\n k += 1 }"));
  EXPECT_FALSE(mayReadUnwritten(counted, Contexts::peel(counted.graph)));
  GraphOf from(kernelOf("for k in n..40 { if k == n { s[t] = n; sync_block() }\n x[t] = s[t] }"));
  EXPECT_FALSE(mayReadUnwritten(from, Contexts::peel(from.graph)));
}

TEST(Solve, ACounterThatWrapsIsNotFollowed) {
  GraphOf made(kernelOf("var k = 0u8\n loop { if k == 0 { if n > 3 { break } } else { x[t] = s[t] }\n k += 1 }"));
  EXPECT_FALSE(Contexts::peel(made.graph).isFollowed(LoopId{0})) << made.dump();
}

TEST(Solve, AConditionThatDoesNotLeaveTheLoopKeepsNoCounterFromWrapping) {
  for (const char* body :
       {"if k < 2 { x[t] = s[t] } else { s[t] = n }", "if k < 200 { s[t] = n }\n if k == 0 { x[t] = s[t] }"}) {
    GraphOf made(kernelOf("var k = 250u8\n loop { " + std::string(body) + "\n k += 1\n if k == 9 { break } }"));
    EXPECT_FALSE(Contexts::peel(made.graph).isFollowed(LoopId{0})) << body;
  }
  GraphOf bounded(kernelOf("var k = 0u8\n while k < 200 { if k == 0 { s[t] = n }\n x[t] = s[t]\n k += 1 }"));
  EXPECT_TRUE(Contexts::peel(bounded.graph).isFollowed(LoopId{0}));
}

TEST(Solve, IterationsBeginAnewWhereTheLoopIsEntered) {
  // Written in the second iteration only, read in the third: the outer loop's second round is no third iteration.
  GraphOf made(
      kernelOf("for o in 0..n { for k in 0..2 { if k == 1 { s[t] = o; sync_block() } else { x[t] = s[t] } } }"));
  EXPECT_TRUE(mayReadUnwritten(made, Contexts::ring(made.graph, 3)));
  GraphOf later(kernelOf("for k in 0..n { if k == 1 { s[t] = k; sync_block() }\n if k > 1 { x[t] = s[t] } }"));
  EXPECT_FALSE(mayReadUnwritten(later, Contexts::ring(later.graph, 3, 2)));
}

TEST(Solve, ValuesAreKnownModuloTheRing) {
  GraphOf made(kernelOf("for k in 0..40 { if k % 3 == 2 { s[t] = k } }"));
  const Contexts ring = Contexts::ring(made.graph, 3);
  const BlockId branch = made.graph.blockOf(made.first(StepKind::Branch, 1));
  const ValueId decided = made.graph.terminator(branch).value;
  ASSERT_EQ(ring.count(branch), 4u);
  // Iteration 0, then those that are 0, 1 and 2 modulo 3.
  for (uint32_t context = 0; context < 4; ++context)
    EXPECT_EQ(ring.known(decided, branch, Context{context}).number(), std::optional<__int128>(context == 3 ? 1 : 0))
        << context;
}

TEST(Solve, NumbersThatGoRoundAreKnown) {
  GraphOf made(kernelOf("var r = 0\n for k in 0..n { if r == 1 { s[t] = k; sync_block() }\n if k > 1 { x[t] = s[t] }\n "
                        "r = (r + 1) % 3 }"));
  EXPECT_FALSE(mayReadUnwritten(made, Contexts::ring(made.graph, 3, 2)));
  GraphOf other(kernelOf("var r = 0\n for k in 0..n { if r == 3 { s[t] = k; sync_block() }\n if k > 1 { x[t] = s[t] "
                         "}\n r = (r + 1) % 5 }"));
  EXPECT_TRUE(mayReadUnwritten(other, Contexts::ring(other.graph, 3, 2)));
}

TEST(Solve, ABranchThatAsksForALaterIterationDecidesIt) {
  GraphOf made(kernelOf("for k in 0..n { if k > 0 { x[t] = s[t] }\n if k + 1 < n { s[t] = k; sync_block() } }"));
  const Structure structure(made.graph);
  const LoopFacts facts = loopFacts(made.graph, structure);
  ASSERT_EQ(facts.ahead.size(), 1u) << made.dump();
  EXPECT_EQ(facts.ahead.begin()->second.distance, 1u);
  EXPECT_TRUE(facts.ahead.begin()->second.holds);
  EXPECT_TRUE(mayReadUnwritten(made, Contexts::ring(made.graph, 1, 1)));
  EXPECT_FALSE(mayReadUnwritten(made, Contexts::ring(made.graph, 1, 1, facts)));
  GraphOf two(kernelOf("var k = 0usize\n while k < 40 { if k > 4 { x[t] = s[t] }\n if !(40 <= k + 8) { s[t] = n; "
                       "sync_block() }\n k += 4 }"));
  const Structure ofTwo(two.graph);
  const LoopFacts ahead = loopFacts(two.graph, ofTwo);
  ASSERT_EQ(ahead.ahead.size(), 1u) << two.dump();
  EXPECT_EQ(ahead.ahead.begin()->second.distance, 2u);
  GraphOf wraps(kernelOf("for k in 0..n { if k > 0 { x[t] = s[t] }\n if k + 2 < n { s[t] = k; sync_block() } }"));
  const Structure ofWraps(wraps.graph);
  EXPECT_TRUE(loopFacts(wraps.graph, ofWraps).ahead.empty()) << "k + 2 may be 0 where n is the largest u32";
}

TEST(Solve, AtADivergentJoinBothSidesHaveRun) {
  GraphOf made(kernelOf("if t < 16 { s[t] = n } else { x[t] = 1 }\n sync_block()\n x[t] = s[t]"));
  EXPECT_TRUE(mayReadUnwritten(made, Contexts::plain(made.graph)));
  for (Block& block : made.graph.blocks)
    block.joinsDivergent = block.predecessors.size() > 1;
  EXPECT_FALSE(mayReadUnwritten(made, Contexts::plain(made.graph)));
}

/// Values read later.
struct Live {
  using State = std::set<uint32_t>;
  static constexpr Direction kDirection = Direction::Backward;
  const Graph& graph;
  State start() const { return {}; }
  void step(StepId, const Step& step, State& state) const {
    if (step.value != kNoValue)
      state.erase(indexOf(step.value));
    for (ValueId use : graph.uses(step))
      state.insert(indexOf(use));
  }
  bool edge(BlockId, uint32_t, State&) const { return true; }
  void join(State& into, const State& other, bool) const { into.insert(other.begin(), other.end()); }
};

TEST(Solve, BackwardProblemsRunAgainstTheEdges) {
  GraphOf made(kernelOf("let a = x[t]\n if n > 3 { x[t] = a }\n x[t] = 5"));
  const auto solution = solve(made.graph, Live{made.graph}, Contexts::plain(made.graph));
  const StepId load = made.first(StepKind::Load), branch = made.first(StepKind::Branch);
  const uint32_t loaded = indexOf(made.graph[load].value);
  EXPECT_TRUE(solution.before(pointOf(branch))->contains(loaded));
  EXPECT_FALSE(solution.before(pointOf(load))->contains(loaded));
  EXPECT_FALSE(solution.before(pointOf(made.first(StepKind::Store, 1)))->contains(loaded));
}

TEST(Solve, BeforeAPointAllVisitsAreJoined) {
  GraphOf made(kernelOf("for k in 0..4 { x[t] = 1\n s[t] = n\n if k == 0 { x[t] = 2 } }"));
  const auto solution = solve(made.graph, Unwritten{made.graph}, Contexts::peel(made.graph));
  EXPECT_EQ(solution.before(pointOf(made.first(StepKind::Store))), std::optional(true)) << "in the first iteration";
  EXPECT_EQ(solution.before(pointOf(made.first(StepKind::Store, 2))), std::optional(false));
}

TEST(Solve, AnEdgeThatTheDomainRefusesIsNotTaken) {
  struct OnlyElse : Unwritten {
    bool edge(BlockId, uint32_t successor, State&) const { return successor == 1; }
  };
  GraphOf made(kernelOf("if n > 3 { s[t] = 1 } else { x[t] = 2 }"));
  const auto solution = solve(made.graph, OnlyElse{{made.graph}}, Contexts::plain(made.graph));
  const BlockId then = made.graph[BlockId{0}].successors[0];
  EXPECT_FALSE(solution.isReached(then, Context{0}));
}

}  // namespace
}  // namespace vortex::lang::flow
