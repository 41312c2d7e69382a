#include "artifact/size_expr.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <unistd.h>

namespace {

using vortex::artifact::SizeExpr;
using Op = SizeExpr::Op;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

int64_t eval(Op op, int64_t lhs, int64_t rhs) {
  const uint64_t slots[] = {static_cast<uint64_t>(lhs), static_cast<uint64_t>(rhs)};
  return SizeExpr::binary(op, SizeExpr::slot(0), SizeExpr::slot(1)).evaluate(slots);
}

/// Judge without shared code: 128-bit arithmetic and the definition of the floor.
int64_t floorByDefinition(__int128 lhs, __int128 rhs) {
  if (rhs == 0)
    return 0;
  __int128 quotient = lhs / rhs;
  if (quotient * rhs != lhs && ((lhs < 0) != (rhs < 0)))
    --quotient;
  return static_cast<int64_t>(static_cast<uint64_t>(static_cast<unsigned __int128>(quotient)));
}

TEST(SizeExpr, ExactValuesAreThoseThatDoNotWrapOnTheWay) {
  for (Op op : {Op::Add, Op::Sub, Op::Mul}) {
    for (int64_t a : {int64_t{0}, int64_t{3}, int64_t{-7}, int64_t{1} << 32, INT64_MAX, INT64_MIN})
      for (int64_t b : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{1} << 31, INT64_MAX, INT64_MIN}) {
        const __int128 x = a, y = b, exact = op == Op::Add ? x + y : op == Op::Sub ? x - y : x * y;
        const std::array<uint64_t, 2> slots = {static_cast<uint64_t>(a), static_cast<uint64_t>(b)};
        auto value = SizeExpr::binary(op, SizeExpr::slot(0), SizeExpr::slot(1)).evaluateExactly(slots);
        ASSERT_EQ(value.has_value(), exact >= INT64_MIN && exact <= INT64_MAX);
        if (value)
          ASSERT_EQ(*value, exact);
      }
  }
}

TEST(SizeExpr, EmptyProgramIsZero) { EXPECT_EQ(SizeExpr{}.evaluate({}), 0); }

TEST(SizeExpr, SlotsBeyondTheSpanReadAsZero) {
  EXPECT_EQ(SizeExpr::slot(3).evaluate({}), 0);
  EXPECT_EQ(SizeExpr::slot(-1).evaluate({}), 0);
}

TEST(SizeExpr, DivisionAgreesWithItsDefinition) {
  const int64_t values[] = {kMin, kMin + 1, -7, -3, -1, 0, 1, 2, 3, 8, kMax};
  for (int64_t lhs : values)
    for (int64_t rhs : values) {
      EXPECT_EQ(eval(Op::FloorDiv, lhs, rhs), floorByDefinition(lhs, rhs)) << lhs << " " << rhs;
      if (rhs != 0) {
        EXPECT_EQ(eval(Op::CeilDiv, lhs, rhs),
                  static_cast<int64_t>(-static_cast<uint64_t>(floorByDefinition(-static_cast<__int128>(lhs), rhs))))
            << lhs << " " << rhs;
        EXPECT_EQ(eval(Op::Mod, lhs, rhs),
                  static_cast<int64_t>(lhs - static_cast<__int128>(rhs) * (rhs == -1 ? -static_cast<__int128>(lhs)
                                                                                     : floorByDefinition(lhs, rhs))));
      } else {
        EXPECT_EQ(eval(Op::CeilDiv, lhs, rhs), 0);
        EXPECT_EQ(eval(Op::Mod, lhs, rhs), 0);
      }
    }
}

TEST(SizeExpr, ArithmeticWraps) {
  EXPECT_EQ(eval(Op::Add, kMax, 1), kMin);
  EXPECT_EQ(eval(Op::Sub, kMin, 1), kMax);
  EXPECT_EQ(eval(Op::Mul, kMin, -1), kMin);
}

TEST(SizeExpr, LogicAndComparisons) {
  EXPECT_EQ(eval(Op::Less, -1, 0), 1);
  EXPECT_EQ(eval(Op::Equal, 4, 4), 1);
  EXPECT_EQ(eval(Op::And, 4, 0), 0);
  EXPECT_EQ(eval(Op::Or, 4, 0), 1);
  EXPECT_EQ(SizeExpr::unary(Op::Not, SizeExpr::constant(0)).evaluate({}), 1);
  for (int64_t value : {int64_t{1}, int64_t{64}, int64_t{1} << 62})
    EXPECT_EQ(SizeExpr::unary(Op::IsPowerOfTwo, SizeExpr::constant(value)).evaluate({}), 1);
  for (int64_t value : {int64_t{0}, int64_t{-4}, int64_t{6}, kMin})
    EXPECT_EQ(SizeExpr::unary(Op::IsPowerOfTwo, SizeExpr::constant(value)).evaluate({}), 0);
}

TEST(SizeExpr, MalformedProgramsAreRecognisedAndHarmless) {
  SizeExpr noOperands{{{Op::Add, 0}}}, twoValues{{{Op::Constant, 1}, {Op::Constant, 2}}};
  EXPECT_FALSE(noOperands.isWellFormed());
  EXPECT_FALSE(twoValues.isWellFormed());
  EXPECT_FALSE((SizeExpr{{{static_cast<Op>(200), 0}}}.isWellFormed()));
  EXPECT_EQ(noOperands.evaluate({}), 0);
  EXPECT_EQ(noOperands.toC({}), "INT64_C(0)");
  EXPECT_TRUE(SizeExpr{}.isWellFormed());
}

TEST(SizeExpr, LongProgramsEvaluate) {
  SizeExpr sum = SizeExpr::slot(0);
  for (int i = 0; i < 1000; ++i)
    sum = SizeExpr::binary(Op::Add, SizeExpr::slot(0), sum);
  const uint64_t slots[] = {3};
  EXPECT_EQ(sum.evaluate(slots), 3003);
}

/// Random programs, printed as C, compiled by the system's compiler and compared with evaluate.
TEST(SizeExpr, CExpressionsHaveTheSameValues) {
  if (std::system("cc --version > /dev/null 2>&1") != 0)
    GTEST_SKIP() << "no C compiler";
  std::mt19937_64 random(7);
  const std::string names[] = {"a", "b", "c"};
  const uint64_t slots[] = {17, static_cast<uint64_t>(-5), static_cast<uint64_t>(kMin)};
  const std::string stem = testing::TempDir() + "size_expr_" + std::to_string(::getpid());
  std::ofstream source(stem + ".c");
  source << "#include <stdint.h>\nint main(void) { int64_t a = 17, b = -5, c = INT64_MIN; int bad = 0; (void)a; "
            "(void)b; (void)c;\n";
  for (int count = 0; count < 60; ++count) {
    std::vector<SizeExpr> pool = {SizeExpr::slot(0), SizeExpr::slot(1), SizeExpr::slot(2), SizeExpr::constant(kMin),
                                  SizeExpr::constant(-3)};
    for (int step = 0; step < 3; ++step) {
      const auto op = static_cast<Op>(static_cast<int>(Op::Add) + static_cast<int>(random() % 13));
      const SizeExpr &lhs = pool[random() % pool.size()], &rhs = pool[random() % pool.size()];
      pool.push_back(op == Op::Not ? SizeExpr::unary(Op::IsPowerOfTwo, rhs) : SizeExpr::binary(op, lhs, rhs));
    }
    const SizeExpr& expr = pool.back();
    source << "bad |= (uint64_t)(" << expr.toC(names) << ") != UINT64_C(" << static_cast<uint64_t>(expr.evaluate(slots))
           << ");\n";
  }
  source << "return bad; }\n";
  source.close();
  const std::string build = "cc -w -o " + stem + " " + stem + ".c";
  ASSERT_EQ(std::system(build.c_str()), 0);
  EXPECT_EQ(std::system(stem.c_str()), 0);
  std::remove(stem.c_str());
  std::remove((stem + ".c").c_str());
}

}  // namespace
