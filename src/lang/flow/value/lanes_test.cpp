#include "lang/flow/value/lanes.h"

#include <gtest/gtest.h>

#include "base/fresh_seed.h"
#include "lang/flow/value/testing/every_value.h"

namespace vortex::lang::flow {
namespace {

/// Expressions over a thread's position and one unknown that all threads agree on.
class Position {
public:
  explicit Position(NodeTable& nodes) : nodes_(nodes) {
    for (uint32_t axis = 0; axis < 3; ++axis)
      leaves.push_back(nodes.position(PositionKind::ThreadId, axis));
    for (PositionKind kind : {PositionKind::ThreadLocalId, PositionKind::WarpId, PositionKind::LaneId})
      leaves.push_back(nodes.position(kind));
    leaves.push_back(counter = nodes.argument(0, {4, false}));
  }

  /// What the value is for the thread; the oracle of lanes.
  __int128 of(ValueId value, const std::array<int64_t, 3>& block, int64_t linear, int64_t count) const {
    const Node& node = nodes_[value];
    const auto operand = [&](size_t index) { return of(nodes_.operand(value, index), block, linear, count); };
    switch (node.kind) {
    case NodeKind::Constant: return node.constant();
    case NodeKind::Argument: return count;
    case NodeKind::Convert: return node.type.wrap(operand(0));
    case NodeKind::Op:
      return applyOp(node.op, node.type, operand(0), operand(1), operandCount(node.op) == 3 ? operand(2) : 0);
    default: break;
    }
    switch (node.position()) {
    case PositionKind::ThreadId:
      return node.axis() == 0   ? linear % block[0]
             : node.axis() == 1 ? linear / block[0] % block[1]
                                : linear / block[0] / block[1];
    case PositionKind::WarpId: return linear / 32;
    case PositionKind::LaneId: return linear % 32;
    default: return linear;
    }
  }

  std::vector<ValueId> leaves;
  ValueId counter;

private:
  const NodeTable& nodes_;
};

constexpr std::array<int64_t, 3> kBlocks[] = {{64, 1, 1}, {32, 4, 1}, {16, 8, 1}, {8, 8, 4}, {48, 2, 1}, {128, 2, 1}};

TEST(Lanes, KnowTheWarpsOfBlocksBeyond65536Threads) {
  NodeTable nodes;
  const ValueId local = nodes.position(PositionKind::ThreadLocalId), lane = nodes.position(PositionKind::LaneId);
  const auto laneFrom = [&](__int128 first) {
    const ValueId isBelow = nodes.op(Op::Lt, kBool, local, nodes.constant(kUsize, first));
    return nodes.op(Op::Select, kUsize, isBelow, nodes.constant(kUsize, 0), lane);
  };
  Values values(nodes);
  LaneValues lanes(values, {70016, 1, 1}, {[](ValueId) { return false; }});
  EXPECT_FALSE(lanes.isSameInWarp(laneFrom(65536)));
  EXPECT_TRUE(lanes.isSameInWarp(laneFrom(70016)));
}

TEST(Lanes, AreWhatEachThreadComputes) {
  std::mt19937 random(base::freshSeed());
  size_t same = 0, found = 0, numbers = 0;
  for (int trial = 0; trial < 400; ++trial) {
    NodeTable nodes;
    Position position(nodes);
    testing::RandomNodes expressions(nodes, position.leaves, random());
    const std::array<int64_t, 3>& block = kBlocks[random() % std::size(kBlocks)];
    const ValueId value = expressions.make(expressions.anyType(), 2);
    Values values(nodes);
    LaneValues lanes(values, {block[0], block[1], block[2]}, {[](ValueId) { return false; }});
    const int64_t threads = block[0] * block[1] * block[2];
    std::vector<bool> isSameIn(static_cast<size_t>(threads / 32), true);
    for (int64_t linear = 0; linear < threads; ++linear)
      for (int64_t count = 0; count < 16; ++count)
        if (position.of(value, block, linear, count) != position.of(value, block, linear / 32 * 32, count))
          isSameIn[static_cast<size_t>(linear / 32)] = false;
    const bool isSame = std::all_of(isSameIn.begin(), isSameIn.end(), [](bool each) { return each; });
    ASSERT_TRUE(isSame || !lanes.isSameInWarp(value));
    same += isSame;
    found += lanes.isSameInWarp(value);
    // Every number of the counter and the warp: all lanes are numbers then.
    const auto open = lanes.forEachCase([&](LaneValues& chosen) -> std::optional<Undecided> {
      const auto known = chosen.integer(value);
      if (!known)
        return chosen.undecided;
      if (known->isNumbers()) {
        int64_t warp = -1, count = -1;
        for (const LaneValues::Case& each : chosen.cases()) {
          if (each.leaf != position.counter && each.leaf != chosen.warp())
            return std::nullopt;  // any number of an operation's range, more than there are
          (each.leaf == position.counter ? count : warp) = static_cast<int64_t>(each.rest);
        }
        ++numbers;
        for (int64_t w = 0; w < threads / 32; ++w)
          for (int64_t c = 0; c < 16; ++c)
            for (unsigned lane = 0; lane < kLanes && (warp < 0 || w == warp) && (count < 0 || c == count); ++lane)
              EXPECT_TRUE(position.of(value, block, 32 * w + lane, c) == known->numbers()[lane]) << trial;
        return std::nullopt;
      }
      for (const auto& [monomial, numbers] : known->terms())
        for (ValueId leaf : monomial)
          return Undecided{leaf, 0};
      return Undecided{};
    });
    EXPECT_FALSE(open.has_value()) << trial;
    if (::testing::Test::HasFailure())
      return;
  }
  std::printf("found: same in a warp %zu of %zu; %zu cases\n", found, same, numbers);
  EXPECT_GT(found * 2, same);
}

TEST(Lanes, ResiduesOfACounterAreEnoughForItsRemainders) {
  NodeTable nodes;
  const ValueId size = nodes.extent(0), lane = nodes.position(PositionKind::LaneId);
  const ValueId value = nodes.op(Op::Rem, kUsize, nodes.op(Op::Add, kUsize, size, lane), nodes.constant(kUsize, 8));
  Values values(nodes);
  LaneValues lanes(values, {64, 1, 1}, {[](ValueId) { return false; }});
  unsigned decided = 0;
  const auto open = lanes.forEachCase([&](LaneValues& chosen) -> std::optional<Undecided> {
    const auto known = chosen.integer(value);
    if (!known)
      return chosen.undecided;
    EXPECT_TRUE(known->isNumbers());
    for (unsigned i = 0; i < kLanes; ++i)
      EXPECT_TRUE(known->numbers()[i] == (decided + i) % 8);
    ++decided;
    return std::nullopt;
  });
  EXPECT_FALSE(open.has_value());
  EXPECT_EQ(decided, 8u);
}

TEST(Lanes, RowsOfABlockAreOfAWarp) {
  NodeTable nodes;
  Values values(nodes);
  const LaneSurroundings never{[](ValueId) { return false; }}, always{[](ValueId) { return true; }};
  const ValueId y = nodes.position(PositionKind::ThreadId, 1), x = nodes.position(PositionKind::ThreadId, 0);
  EXPECT_TRUE(LaneValues(values, {32, 8, 1}, never).isSameInWarp(y));
  EXPECT_TRUE(LaneValues(values, {64, 8, 1}, never).isSameInWarp(y));
  EXPECT_FALSE(LaneValues(values, {16, 8, 1}, never).isSameInWarp(y));
  EXPECT_FALSE(LaneValues(values, {32, 8, 1}, never).isSameInWarp(x));
  EXPECT_FALSE(LaneValues(values, {std::nullopt, 8, 1}, never).isSameInWarp(y));
  const ValueId third = nodes.op(Op::Div, kUsize, x, nodes.constant(kUsize, 32));
  EXPECT_TRUE(LaneValues(values, {std::nullopt, 1, 1}, never).isSameInWarp(third));
  const auto isSameBelow = [&](Op op, __int128 bound) {
    const ValueId local = nodes.position(PositionKind::ThreadLocalId);
    return LaneValues(values, {256, 1, 1}, never)
        .isSameInWarp(nodes.op(op, kBool, local, nodes.constant(kUsize, bound)));
  };
  EXPECT_TRUE(isSameBelow(Op::Lt, 64));
  EXPECT_TRUE(isSameBelow(Op::Le, 63));
  EXPECT_FALSE(isSameBelow(Op::Lt, 63));
  EXPECT_FALSE(isSameBelow(Op::Lt, 65));
  EXPECT_FALSE(isSameBelow(Op::Le, 64));
  EXPECT_FALSE(LaneValues(values, {256, 1, 1}, never).isSameInWarp(nodes.load(StepId{0}, kUsize)));
  EXPECT_TRUE(LaneValues(values, {256, 1, 1}, always).isSameInWarp(nodes.load(StepId{0}, kUsize)));
}

}  // namespace
}  // namespace vortex::lang::flow
