#include "lang/sema/dim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace vortex::lang {
namespace {

using Kind = DimAtom::Kind;
const std::vector<std::string> kNames{"N", "M", "K"};
DimExpr var(DimVarId id) { return DimExpr::variable(id); }
DimExpr num(int64_t value) { return DimExpr::constant(value); }

TEST(Dim, EqualPolynomialsAreEqualHoweverTheyAreWritten) {
  const DimExpr lhs = DimExpr::mul(DimExpr::add(var(0), num(1)), DimExpr::sub(var(1), num(2)));
  const DimExpr rhs = DimExpr::sub(DimExpr::add(DimExpr::mul(var(1), var(0)), var(1)),
                                   DimExpr::add(DimExpr::mul(num(2), var(0)), num(2)));
  EXPECT_EQ(lhs, rhs);
  EXPECT_EQ(DimExpr::sub(lhs, rhs).asConstant(), 0);
}

TEST(Dim, DivisionFoldsConstantsAndExactQuotients) {
  EXPECT_EQ(DimExpr::apply(Kind::CeilDiv, num(7), num(3)).asConstant(), 3);
  EXPECT_EQ(DimExpr::apply(Kind::Div, DimExpr::mul(num(6), var(0)), num(3)), DimExpr::mul(num(2), var(0)));
  EXPECT_EQ(DimExpr::apply(Kind::Mod, DimExpr::mul(num(6), var(0)), num(3)).asConstant(), 0);
  EXPECT_EQ(DimExpr::apply(Kind::Min, var(0), var(1)), DimExpr::apply(Kind::Min, var(1), var(0)));
}

TEST(Dim, DivisionOfNegativeNumbersIsThatOfSignedIntegers) {
  EXPECT_EQ(applyToExtents(Kind::Div, -7, 2), -3);
  EXPECT_EQ(applyToExtents(Kind::Mod, -7, 4), -3);
  EXPECT_EQ(applyToExtents(Kind::CeilDiv, -4, 2), -2);
  EXPECT_EQ(applyToExtents(Kind::CeilDiv, -7, -2), 4);
  EXPECT_EQ(applyToExtents(Kind::Div, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(applyToExtents(Kind::Mod, INT64_MIN, -1), 0);
  EXPECT_EQ(applyToExtents(Kind::Div, 7, 0), 0);
  EXPECT_EQ(DimExpr::apply(Kind::Div, num(INT64_MIN), num(-1)), num(INT64_MIN));
}

TEST(Dim, TextUsesTheUsersNames) {
  EXPECT_EQ(DimExpr::add(DimExpr::mul(num(3), var(0)), num(1)).text(kNames), "3*N + 1");
  EXPECT_EQ(DimExpr::apply(Kind::CeilDiv, var(1), num(32)).text(kNames), "ceil_div(M, 32)");
  EXPECT_EQ(DimExpr::apply(Kind::Div, var(0), num(2)).text(kNames), "N / 2");
  EXPECT_EQ(num(0).text(kNames), "0");
}

// Oracle: random expressions evaluated directly and through the normal form.
TEST(Dim, NormalFormKeepsTheValueOfRandomExpressions) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::vector<int64_t> values{static_cast<int64_t>(random() % 50), static_cast<int64_t>(random() % 50),
                                static_cast<int64_t>(random() % 50)};
    std::vector<std::pair<DimExpr, int64_t>> pool;
    for (DimVarId id = 0; id < 3; ++id)
      pool.emplace_back(var(id), values[id]);
    pool.emplace_back(num(3), 3);
    for (int step = 0; step < 8; ++step) {
      const auto& [a, va] = pool[random() % pool.size()];
      const auto& [b, vb] = pool[random() % pool.size()];
      switch (random() % 6) {
      case 0: pool.emplace_back(DimExpr::add(a, b), va + vb); break;
      case 1: pool.emplace_back(DimExpr::sub(a, b), va - vb); break;
      case 2:
        if (std::abs(va * vb) < 100000)
          pool.emplace_back(DimExpr::mul(a, b), va * vb);
        break;
      case 3: pool.emplace_back(DimExpr::apply(Kind::Div, a, num(4)), va / 4); break;
      case 4:
        pool.emplace_back(DimExpr::apply(Kind::CeilDiv, a, num(4)),
                          static_cast<int64_t>(std::ceil(static_cast<double>(va) / 4)));
        break;
      default: pool.emplace_back(DimExpr::apply(Kind::Max, a, b), std::max(va, vb)); break;
      }
    }
    std::vector<std::optional<DimExpr>> constants{num(values[0]), num(values[1]), num(values[2])};
    for (const auto& [expr, value] : pool)
      EXPECT_EQ(expr.substitute(constants).asConstant(), value) << expr.text(kNames);
  }
}

}  // namespace
}  // namespace vortex::lang
