#include "size/random_tree.h"
#include "size/text.h"

#include <gtest/gtest.h>

namespace {

using namespace vortex::size;

std::string simplified(const char* text) {
  Arena arena;
  auto expr = parse(arena, text);
  return expr ? print(*expr) : expr.error().message;
}

TEST(Simplify, EqualExpressionsAreOneNode) {
  Arena arena;
  Expr m = arena.dim(0, 0), n = arena.dim(1, 1);
  EXPECT_EQ(make(Op::Mul, m, n), make(Op::Mul, n, m));
  EXPECT_EQ(make(Op::Add, m, 3), make(Op::Add, arena.constant(3), m));
  EXPECT_NE(make(Op::Sub, m, n), make(Op::Sub, n, m));
  EXPECT_EQ(print(make(Op::Mul, n, m)), "dim(0,0) * dim(1,1)");  // as first written
}

TEST(Simplify, NeutralAndAbsorbingOperandsVanish) {
  for (const char* text :
       {"dim(0,0) * 1", "0 + dim(0,0)", "dim(0,0) - 0", "floordiv(dim(0,0), 1)", "ceildiv(dim(0,0), 1)",
        "max(0, dim(0,0))", "max(dim(0,0), dim(0,0))", "min(dim(0,0), max(scalar(1), dim(0,0)))",
        "dim(0,0) + scalar(1) - scalar(1)", "select(dim(0,0) < 0, 7, dim(0,0))", "floordiv(dim(0,0) * 3, 3)",
        "mod(dim(0,0), 281474976710656)"})
    EXPECT_EQ(simplified(text), "dim(0,0)") << text;
  for (const char* text : {"scalar(0) * 0", "mod(scalar(0), 1)", "mod(scalar(0) * 48, 16)", "floordiv(0, scalar(0))",
                           "scalar(0) < scalar(0)", "dim(0,0) < 0", "dim(0,0) < 3 & !(dim(0,0) < 3)", "pow2(-8)",
                           "min(mod(dim(0,0), 5), 0)", "floordiv(mod(dim(0,0), 5), 5)", "dim(0,0) == -1"})
    EXPECT_EQ(simplified(text), "0") << text;
}

TEST(Simplify, ConstantsOfNestedOperatorsJoin) {
  EXPECT_EQ(simplified("ceildiv(ceildiv(dim(0,0), 8), 16)"), "ceildiv(dim(0,0), 128)");
  EXPECT_EQ(simplified("floordiv(floordiv(scalar(0), 8), 16)"), "floordiv(scalar(0), 128)");
  EXPECT_EQ(simplified("min(64, min(dim(0,0), 32))"), "min(dim(0,0), 32)");
  EXPECT_EQ(simplified("3 * (scalar(0) * 5)"), "scalar(0) * 15");
  EXPECT_EQ(simplified("scalar(0) + 1 + 2"), "scalar(0) + 3");
  EXPECT_EQ(simplified("min(dim(0,0), 64) < 65"), "1");
  EXPECT_EQ(simplified("dim(0,0) * dim(0,1) * 4 < 0"), "0");  // of one tensor
  EXPECT_EQ(simplified("select(scalar(0) < scalar(1), scalar(0), scalar(1))"), "min(scalar(0), scalar(1))");
}

TEST(Simplify, WhatMayWrapStays) {
  EXPECT_EQ(simplified("floordiv(scalar(0) * 3, 3)"), "floordiv(scalar(0) * 3, 3)");
  EXPECT_EQ(simplified("scalar(0) < scalar(0) + 1"), "scalar(0) < scalar(0) + 1");
  EXPECT_EQ(simplified("floordiv(dim(0,0), dim(0,0))"), "floordiv(dim(0,0), dim(0,0))");  // 0 / 0 is 0
  for (const char* text : {"dim(0,0) * dim(1,1) < 0", "dim(0,0) * dim(0,0) < 0", "dim(0,0) * dim(0,1) * 65537 < 0",
                           "dim(0,0) * scalar(0) * dim(0,1) < 0"})
    EXPECT_EQ(simplified(text), text);
}

TEST(Simplify, NoRuleChangesAValueOrAnExactOne) {
  test::Random random(20250);
  for (int round = 0; round < 60000; ++round) {
    Arena arena;
    const test::Tree tree = random.tree(1 + round % 5);
    const Expr expr = tree.build(arena);
    Table table;
    const Id id = table.add(expr);
    const Program program(table, [](const Row& row) { return test::slotOf(row.op, row.operands[0], row.operands[1]); });
    for (int launch = 0; launch < 8; ++launch) {
      const std::vector<uint64_t> slots = random.slots();
      const int64_t wanted = tree.evaluate(slots);
      ASSERT_EQ(evaluate(expr,
                         [&](const Node& node) {
                           return static_cast<int64_t>(slots[test::slotOf(node.op, node.argument, node.dim)]);
                         }),
                wanted)
          << print(expr);
      Values values(program, test::surroundingsOf(slots));
      values.advance(slots);
      ASSERT_EQ(values[id], wanted) << print(expr);
      if (tree.isExact(slots))
        ASSERT_EQ(values.exactly(id), wanted) << print(expr);
      ASSERT_TRUE(expr.range().contains(wanted)) << print(expr);
      ASSERT_EQ(static_cast<uint64_t>(wanted) & ((uint64_t{1} << expr.node().zeros) - 1), 0u) << print(expr);
    }
  }
}

}  // namespace
