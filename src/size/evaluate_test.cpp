#include "size/random_tree.h"
#include "size/text.h"

#include <gtest/gtest.h>

namespace {

using namespace vortex::size;

constexpr int64_t kMin = INT64_MIN, kMax = INT64_MAX;

/// Judge without shared code: 128-bit arithmetic and the definition of the floor.
int64_t floorByDefinition(__int128 lhs, __int128 rhs) {
  if (rhs == 0)
    return 0;
  __int128 quotient = lhs / rhs;
  if (quotient * rhs != lhs && ((lhs < 0) != (rhs < 0)))
    --quotient;
  return static_cast<int64_t>(static_cast<uint64_t>(static_cast<unsigned __int128>(quotient)));
}

TEST(Evaluate, DivisionAgreesWithItsDefinition) {
  const int64_t values[] = {kMin, kMin + 1, -7, -3, -1, 0, 1, 2, 3, 8, kMax};
  for (int64_t lhs : values)
    for (int64_t rhs : values) {
      EXPECT_EQ(apply(Op::FloorDiv, lhs, rhs), floorByDefinition(lhs, rhs)) << lhs << " " << rhs;
      if (rhs != 0) {
        EXPECT_EQ(apply(Op::CeilDiv, lhs, rhs),
                  static_cast<int64_t>(-static_cast<uint64_t>(floorByDefinition(-static_cast<__int128>(lhs), rhs))))
            << lhs << " " << rhs;
        EXPECT_EQ(apply(Op::Mod, lhs, rhs),
                  static_cast<int64_t>(lhs - static_cast<__int128>(rhs) * (rhs == -1 ? -static_cast<__int128>(lhs)
                                                                                     : floorByDefinition(lhs, rhs))));
      } else {
        EXPECT_EQ(apply(Op::CeilDiv, lhs, rhs), 0);
        EXPECT_EQ(apply(Op::Mod, lhs, rhs), 0);
      }
    }
}

TEST(Evaluate, ArithmeticWraps) {
  EXPECT_EQ(apply(Op::Add, kMax, 1), kMin);
  EXPECT_EQ(apply(Op::Sub, kMin, 1), kMax);
  EXPECT_EQ(apply(Op::Mul, kMin, -1), kMin);
  for (Op op : {Op::Add, Op::Sub, Op::Mul})
    for (int64_t a : {int64_t{0}, int64_t{3}, int64_t{-7}, int64_t{1} << 32, kMax, kMin})
      for (int64_t b : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{1} << 31, kMax, kMin}) {
        const __int128 x = a, y = b, exact = op == Op::Add ? x + y : op == Op::Sub ? x - y : x * y;
        EXPECT_EQ(wraps(op, a, b), exact < kMin || exact > kMax);
      }
}

TEST(Evaluate, LogicAndComparisons) {
  EXPECT_EQ(apply(Op::Less, -1, 0), 1);
  EXPECT_EQ(apply(Op::Equal, 4, 4), 1);
  EXPECT_EQ(apply(Op::And, 4, 0), 0);
  EXPECT_EQ(apply(Op::Or, 4, 0), 1);
  EXPECT_EQ(apply(Op::Not, 0), 1);
  EXPECT_EQ(apply(Op::Select, -2, 5, 6), 5);
  EXPECT_EQ(apply(Op::Select, 0, 5, 6), 6);
  for (int64_t value : {int64_t{1}, int64_t{64}, int64_t{1} << 62})
    EXPECT_EQ(apply(Op::IsPowerOfTwo, value), 1);
  for (int64_t value : {int64_t{0}, int64_t{-4}, int64_t{6}, kMin})
    EXPECT_EQ(apply(Op::IsPowerOfTwo, value), 0);
}

uint32_t slotOfRow(const Row& row) { return test::slotOf(row.op, row.operands[0], row.operands[1]); }

TEST(Evaluate, ATableHoldsEqualExpressionsOnce) {
  Arena arena;
  Table table;
  const Id zero = table.add(arena.constant(0)), area = table.add(make(Op::Mul, arena.dim(0, 0), arena.dim(0, 1)));
  EXPECT_EQ(zero, Id{});
  EXPECT_EQ(table.rows().size(), 4u);
  Arena other;
  EXPECT_EQ(table.add(make(Op::Mul, other.dim(0, 0), other.dim(0, 1))), area);
  EXPECT_EQ(table.constant(0), zero);
  EXPECT_EQ(table.rows().size(), 4u);
  EXPECT_FALSE(table.firstBadRow());
}

TEST(Evaluate, SlotsMayBecomeKnownInPieces) {
  test::Random random(7);
  for (int round = 0; round < 2000; ++round) {
    Arena arena;
    Table table;
    std::vector<Id> ids;
    for (int i = 0; i < 6; ++i)
      ids.push_back(table.add(random.tree(3).build(arena)));
    const Program program(table, slotOfRow);
    const std::vector<uint64_t> slots = random.slots();
    Values whole(program, test::surroundingsOf(slots)), pieces(program, test::surroundingsOf(slots));
    whole.advance(slots);
    for (size_t known = 0; known <= slots.size(); known += 1 + random.below(4))
      pieces.advance(std::span(slots).first(known));
    pieces.advance(slots);
    for (Id id : ids) {
      ASSERT_EQ(pieces[id], whole[id]);
      ASSERT_EQ(pieces.exactly(id), whole.exactly(id));
    }
  }
}

TEST(Evaluate, AWrappedStepSpoilsOnlyWhatUsesIt) {
  Arena arena;
  Table table;
  const Expr area = make(Op::Mul, arena.scalar(2), arena.scalar(2));
  const Id square = table.add(area), half = table.add(make(Op::FloorDiv, area, 2)),
           other = table.add(make(Op::Add, arena.scalar(2), 1)),
           passed = table.add(make(Op::Select, make(Op::Less, arena.scalar(2), 0), area, arena.scalar(2))),
           taken =
               table.add(make(Op::Select, make(Op::Less, arena.constant(0), arena.scalar(2)), area, arena.scalar(2)));
  const Program program(table, slotOfRow);
  std::vector<uint64_t> slots(test::kSlots, uint64_t{1} << 32);
  Values values(program);
  values.advance(slots);
  EXPECT_EQ(values[square], 0);
  EXPECT_FALSE(values.exactly(square));
  EXPECT_FALSE(values.exactly(half));
  EXPECT_EQ(values.exactly(other), (int64_t{1} << 32) + 1);
  EXPECT_EQ(values.exactly(passed), int64_t{1} << 32);
  EXPECT_FALSE(values.exactly(taken));
}

TEST(Evaluate, RowsThatNoTableHasAreFound) {
  const Row dim{.op = Op::Dim, .operands = {3, 1, 0}};
  EXPECT_FALSE(Table({Row{}, dim, Row{.op = Op::Not, .operands = {1, 0, 0}}}).firstBadRow());
  EXPECT_EQ(Table(std::vector<Row>{}).firstBadRow(), 0u);
  EXPECT_EQ(Table({dim}).firstBadRow(), 0u);
  EXPECT_EQ(Table({Row{}, Row{.op = Op::Not, .operands = {1, 0, 0}}}).firstBadRow(), 1u);  // of itself
  EXPECT_EQ(Table({Row{}, Row{.op = Op::Add, .operands = {0, 2, 0}}}).firstBadRow(), 1u);
  EXPECT_EQ(Table({Row{}, Row{.op = Op::Not, .operands = {0, 0, 7}}}).firstBadRow(), 1u);
  EXPECT_EQ(Table({Row{}, dim, Row{.op = static_cast<Op>(200)}}).firstBadRow(), 2u);
  EXPECT_FALSE(Table({Row{}, Row{.op = Op::Device, .operands = {8, 0, 0}}}).firstBadRow());
  for (uint32_t blocks : {0u, 9u, UINT32_MAX})
    EXPECT_EQ(Table({Row{}, Row{.op = Op::Device, .operands = {blocks, 0, 0}}}).firstBadRow(), 1u);
}

}  // namespace
