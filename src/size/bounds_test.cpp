#include "size/bounds.h"
#include "size/random_tree.h"
#include "size/text.h"

#include <gtest/gtest.h>

namespace {

using namespace vortex::size;

/// scalar(9) is from scalar(0) to scalar(1) - 1, scalar(8) from scalar(9) + 1 to scalar(1) - 1.
std::optional<Bounds> ofRounds(Arena& arena, uint32_t argument) {
  Expr last = make(Op::Sub, arena.scalar(1), 1);
  if (argument == 9)
    return Bounds{arena.scalar(0), last};
  if (argument == 8)
    return Bounds{make(Op::Add, arena.scalar(9), 1), last};
  return std::nullopt;
}

std::string bounds(const char* text) {
  Arena arena;
  auto found = boundsOf(*parse(arena, text), [&](uint32_t argument) { return ofRounds(arena, argument); });
  return found ? print(found->low) + " to " + print(found->high) : "nothing";
}

TEST(Bounds, ExtentsOfWindowsFollowTheirEnds) {
  EXPECT_EQ(bounds("dim(0,0) - scalar(9)"), "dim(0,0) - (scalar(1) - 1) to dim(0,0) - scalar(0)");
  EXPECT_EQ(bounds("scalar(9) + 1"), "scalar(0) + 1 to scalar(1)");
  EXPECT_EQ(bounds("scalar(8) * 4"), "(scalar(0) + 1) * 4 to (scalar(1) - 1) * 4");
  EXPECT_EQ(bounds("ceildiv(dim(0,0), 64)"), "ceildiv(dim(0,0), 64) to ceildiv(dim(0,0), 64)");
}

TEST(Bounds, QuotientsByWhatMayBeNegativeHaveNone) {
  EXPECT_EQ(bounds("floordiv(dim(0,0), scalar(9))"), "nothing");
  EXPECT_EQ(bounds("mod(dim(0,0), scalar(8) - 3)"), "nothing");
}

/// Scalar 2, within its bounds: two constants.
TEST(Bounds, HoldForAllValuesOfRandomExpressions) {
  test::Random random(77);
  unsigned compared = 0, bounded = 0;
  for (int round = 0; round < 20000; ++round) {
    Arena arena;
    const test::Tree tree = random.tree(4);
    const Expr expr = tree.build(arena);
    const int64_t low = static_cast<int64_t>(random.below(40)) - 8, high = low + static_cast<int64_t>(random.below(12));
    auto found = boundsOf(expr, [&](uint32_t argument) -> std::optional<Bounds> {
      EXPECT_EQ(argument, 2u);
      return Bounds{arena.constant(low), arena.constant(high)};
    });
    if (!found)
      continue;
    ++bounded;
    std::vector<uint64_t> slots = random.slots();
    for (uint64_t& slot : slots)  // small, so that few steps wrap
      slot = slot % 1000;
    const auto value = [&](Expr of, bool& isExact) {
      return fold<int64_t>(of, [&](const Node& node, const std::array<int64_t, 3>& operands) {
        if (node.op == Op::Constant)
          return node.value;
        if (arity(node.op) == 0)
          return static_cast<int64_t>(slots[test::slotOf(node.op, node.argument, node.dim)]);
        isExact &= arity(node.op) != 2 || !wraps(node.op, operands[0], operands[1]);
        return apply(node.op, operands[0], operands[1], operands[2]);
      });
    };
    bool isExact = true;
    const int64_t least = value(found->low, isExact), most = value(found->high, isExact);
    for (int64_t scalar = low; scalar <= high; ++scalar) {
      slots[test::slotOf(Op::Scalar, 2, 0)] = static_cast<uint64_t>(scalar);
      const int64_t here = value(expr, isExact);
      if (!isExact)
        break;
      ++compared;
      ASSERT_LE(least, here) << print(expr) << " at " << scalar;
      ASSERT_GE(most, here) << print(expr) << " at " << scalar;
    }
  }
  EXPECT_GT(bounded, 8000u);
  EXPECT_GT(compared, 20000u);
}

}  // namespace
