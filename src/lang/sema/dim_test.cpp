#include "lang/sema/dim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

TEST(Dim, QuotientsThatMakeSumsZero) {
  const DimExpr n = var(0), m = var(1);
  const auto half = DimExpr::apply(Kind::Div, n, num(2)), part = DimExpr::apply(Kind::Div, n, m);
  const auto needed = [](const DimExpr& a, const DimExpr& b) { return quotientsOfZero(DimExpr::sub(a, b)); };
  EXPECT_EQ(needed(n, n)->size(), 0u);
  EXPECT_EQ(needed(DimExpr::mul(half, num(2)), n), (std::vector<ExactQuotient>{{n, num(2)}}));
  EXPECT_EQ(needed(DimExpr::sub(n, half), half), (std::vector<ExactQuotient>{{n, num(2)}}));
  EXPECT_EQ(needed(DimExpr::mul(part, m), n), (std::vector<ExactQuotient>{{n, m}}));
  EXPECT_EQ(needed(DimExpr::mul(DimExpr::mul(part, part), DimExpr::mul(m, m)), DimExpr::mul(n, n))->size(), 1u);
  EXPECT_EQ(needed(DimExpr::sub(n, DimExpr::apply(Kind::Mod, n, num(4))), n)->size(), 1u);
  EXPECT_EQ(needed(DimExpr::mul(DimExpr::apply(Kind::Div, half, num(3)), num(6)), n)->size(), 2u);
  EXPECT_FALSE(needed(n, m));
  EXPECT_FALSE(needed(DimExpr::mul(half, num(3)), n));
  EXPECT_FALSE(needed(DimExpr::mul(DimExpr::apply(Kind::Max, n, m), num(2)), n));
  EXPECT_FALSE(needed(DimExpr::mul(DimExpr::apply(Kind::Div, DimExpr::opaque(1), num(2)), num(2)), DimExpr::opaque(1)));
}

// Oracle: wherever the quotients leave no remainder, the sum is 0.
TEST(Dim, RandomSumsAreZeroWhereTheirQuotientsAreExact) {
  std::mt19937 random(11);
  size_t found = 0, exact = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<DimExpr> pool{var(0), var(1), num(2), num(3)};
    for (int step = 0; step < 4; ++step) {
      const DimExpr a = pool[random() % pool.size()], b = pool[random() % pool.size()];
      switch (random() % 4) {
      case 0: pool.push_back(DimExpr::add(a, b)); break;
      case 1: pool.push_back(DimExpr::mul(a, b)); break;
      default: {
        const Kind kind = std::array{Kind::Div, Kind::CeilDiv, Kind::Mod}[random() % 3];
        const DimExpr quotient = DimExpr::apply(kind, a, b);
        pool.push_back(quotient);
        pool.push_back(kind == Kind::Mod ? DimExpr::sub(a, quotient) : DimExpr::mul(quotient, b));
      }
      }
    }
    const DimExpr sum = DimExpr::sub(pool[random() % pool.size()], pool[random() % pool.size()]);
    const auto quotients = quotientsOfZero(sum);
    if (!quotients || quotients->empty())
      continue;
    ++found;
    for (int64_t n = 1; n < 40; ++n)
      for (int64_t m = 1; m < 7; ++m) {
        const std::vector<std::optional<DimExpr>> values{num(n), num(m)};
        const bool areExact = std::ranges::all_of(*quotients, [&](const ExactQuotient& quotient) {
          const auto x = quotient.dividend.substitute(values).asConstant();
          const auto y = quotient.divisor.substitute(values).asConstant();
          return *y != 0 && *x % *y == 0;
        });
        exact += areExact;
        if (areExact)
          ASSERT_EQ(sum.substitute(values).asConstant(), 0) << sum.text(kNames) << " for " << n << ", " << m;
      }
  }
  EXPECT_GT(found, 100u);
  EXPECT_GT(exact, 1000u);
}

}  // namespace
}  // namespace vortex::lang
