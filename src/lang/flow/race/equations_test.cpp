// What follows from numbers that are 0, against all small numbers.
#include "lang/flow/race/equations.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/fresh_seed.h"
#include "lang/flow/value/testing/evaluate.h"

namespace vortex::lang::flow {
namespace {

constexpr PointId kHere{0};

/// Leaves of two sides and sizes that both have, with conditions and the numbers that are equal.
class EquationsTest : public ::testing::Test {
protected:
  ValueId number(__int128 value) { return nodes.constant(kUsize, value); }
  ValueId leaf() {
    leaves.push_back(nodes.argument(static_cast<uint32_t>(leaves.size()), kUsize));
    return leaves.back();
  }
  ValueId op(Op op, ValueId a, ValueId b) { return nodes.op(op, kUsize, a, b); }
  ValueId op(Op kind, ValueId a, __int128 b) { return op(kind, a, number(b)); }
  void below(ValueId a, ValueId b) { conditions.push_back({nodes.op(Op::Lt, kBool, a, b), true}); }
  void below(ValueId a, __int128 b) { below(a, number(b)); }

  struct Answer {
    bool isContradictory = false;
    std::vector<bool> equal;
  };
  using Both = std::pair<ValueId, ValueId>;

  Answer ask(const std::vector<Both>& given, const std::vector<Both>& asked) {
    Values values(nodes, {.conditions = [&](PointId) { return conditions; }});
    Equations equations(nodes, values, kHere);
    std::vector<Polynomial> zeros;
    for (const auto& [a, b] : given)
      if (auto zero = Polynomial::sum(values.integer(a, kHere), values.integer(b, kHere), -1))
        zeros.push_back(*zero);
    Answer out{equations.areContradictory(zeros), {}};
    for (const auto& [a, b] : asked)
      out.equal.push_back(equations.areEqual(a, b));
    wasTakenApart = equations.isTakenApart();
    return out;
  }

  /// Every row of numbers up to `most` that the conditions allow and in which all given pairs are equal.
  void forEachMeeting(const std::vector<Both>& given, int64_t most,
                      const std::function<void(const std::vector<int64_t>&)>& visit) const {
    std::vector<int64_t> row(leaves.size());
    while (true) {
      bool holds = true;
      for (const Condition& each : conditions)
        holds = holds && (testing::evaluate(nodes, each.value, row) != 0) == each.holds;
      for (const auto& [a, b] : given)
        holds = holds && testing::evaluate(nodes, a, row) == testing::evaluate(nodes, b, row);
      if (holds)
        visit(row);
      size_t i = 0;
      while (i < row.size() && ++row[i] > most)
        row[i++] = 0;
      if (i == row.size())
        return;
    }
  }

  /// Nothing that is said to follow is wrong for numbers up to `most`.
  void expectSound(const std::vector<Both>& given, const std::vector<Both>& asked, const Answer& answer,
                   int64_t most) const {
    forEachMeeting(given, most, [&](const std::vector<int64_t>& row) {
      EXPECT_FALSE(answer.isContradictory);
      for (size_t i = 0; i < asked.size(); ++i)
        EXPECT_TRUE(!answer.equal[i] ||
                    testing::evaluate(nodes, asked[i].first, row) == testing::evaluate(nodes, asked[i].second, row))
            << i;
    });
  }

  /// All pairs of leaves are equal where the given ones are: it is so, and it is found.
  void expectAllEqual(const std::vector<Both>& given, const std::vector<Both>& asked, bool wanted = true,
                      int64_t most = 5) {
    const Answer answer = ask(given, asked);
    expectSound(given, asked, answer, most);
    for (size_t i = 0; i < asked.size(); ++i)
      EXPECT_EQ(answer.equal[i], wanted) << i;
    bool isTrue = true;
    forEachMeeting(given, most, [&](const std::vector<int64_t>& row) {
      for (const auto& [a, b] : asked)
        isTrue = isTrue && testing::evaluate(nodes, a, row) == testing::evaluate(nodes, b, row);
    });
    EXPECT_EQ(isTrue, wanted) << "the test is wrong";
  }

  NodeTable nodes;
  std::vector<ValueId> leaves;
  std::vector<Condition> conditions;
  bool wasTakenApart = false;
};

TEST_F(EquationsTest, RowsAndColumnsAreTakenApartWhereColumnsAreBelowTheWidth) {
  const ValueId n = leaf(), r = leaf(), c = leaf(), s = leaf(), d = leaf();
  for (ValueId each : {n, r, s})
    below(each, 1 << 20);
  below(c, n);
  const std::vector<Both> given = {{op(Op::Add, op(Op::Mul, r, n), c), op(Op::Add, op(Op::Mul, s, n), d)}};
  expectAllEqual(given, {{r, s}, {c, d}}, false, 4);
  below(d, n);
  expectAllEqual(given, {{r, s}, {c, d}}, true, 4);
  EXPECT_TRUE(wasTakenApart);
}

TEST_F(EquationsTest, DigitsOfConstantRadicesAreTakenApartUpToTheirReach) {
  for (const auto& [most, wanted] : {std::pair(4, true), {5, false}}) {
    leaves.clear();
    conditions.clear();
    const ValueId r = leaf(), c = leaf(), s = leaf(), d = leaf();
    for (ValueId each : {r, s})
      below(each, 1 << 20);
    below(c, most);
    below(d, most);
    const std::vector<Both> given = {{op(Op::Add, op(Op::Mul, r, 4), c), op(Op::Add, op(Op::Mul, s, 4), d)}};
    expectAllEqual(given, {{r, s}, {c, d}}, wanted, 9);
  }
}

TEST_F(EquationsTest, ThreeDigitsAreTakenApartOneAfterTheOther) {
  const ValueId a = leaf(), b = leaf(), c = leaf(), x = leaf(), y = leaf(), z = leaf();
  for (ValueId each : {a, x})
    below(each, 1 << 20);
  for (ValueId each : {b, y})
    below(each, 2);
  for (ValueId each : {c, z})
    below(each, 3);
  const auto flat = [&](ValueId i, ValueId j, ValueId k) {
    return op(Op::Add, op(Op::Mul, op(Op::Add, op(Op::Mul, i, 2), j), 3), k);
  };
  expectAllEqual({{flat(a, b, c), flat(x, y, z)}}, {{a, x}, {b, y}, {c, z}}, true, 3);
}

TEST_F(EquationsTest, QuotientsAndRemaindersTogetherAreTheNumber) {
  const ValueId x = leaf(), y = leaf(), w = leaf();
  for (ValueId each : {x, y, w})
    below(each, 1 << 20);
  const std::vector<Both> quotients = {{op(Op::Div, x, w), op(Op::Div, y, w)}},
                          remainders = {{op(Op::Rem, x, w), op(Op::Rem, y, w)}}, given = {quotients[0], remainders[0]};
  expectAllEqual(given, {{x, y}}, false, 9);  // by 0
  below(number(0), w);
  expectAllEqual(quotients, {{x, y}}, false, 9);
  expectAllEqual(remainders, {{x, y}}, false, 9);
  expectAllEqual(given, {{x, y}}, true, 9);
}

TEST_F(EquationsTest, QuotientsOfQuotientsAreThoseByTheProduct) {
  const ValueId x = leaf(), y = leaf();
  for (ValueId each : {x, y})
    below(each, 1 << 20);
  const auto digits = [&](Op kind, ValueId value) { return op(kind, op(Op::Div, value, 2), 3); };
  expectAllEqual({{op(Op::Div, x, 6), op(Op::Div, y, 6)},
                  {digits(Op::Rem, x), digits(Op::Rem, y)},
                  {op(Op::Rem, x, 2), op(Op::Rem, y, 2)}},
                 {{x, y}}, true, 40);
  expectAllEqual({{op(Op::Div, x, 8), op(Op::Div, y, 8)},
                  {digits(Op::Rem, x), digits(Op::Rem, y)},
                  {op(Op::Rem, x, 2), op(Op::Rem, y, 2)}},
                 {{x, y}}, false, 40);
}

TEST_F(EquationsTest, DivisorsThatFollowFromWhatIsEqualAreEqual) {
  // Tiles in groups of rows, of which the last may have fewer.
  const ValueId x = leaf(), y = leaf(), m = leaf();
  for (ValueId each : {x, y, m})
    below(each, 1 << 20);
  below(number(0), m);
  const auto parts = [&](ValueId tile) {
    const ValueId first = op(Op::Mul, op(Op::Div, tile, 6), 2), rows = op(Op::Min, op(Op::Sub, m, first), 2),
                  rest = op(Op::Rem, tile, 6);
    conditions.push_back({nodes.op(Op::Lt, kBool, first, m), true});
    return std::pair(op(Op::Add, first, op(Op::Rem, rest, rows)), op(Op::Div, rest, rows));
  };
  const auto [rowX, columnX] = parts(x);
  const auto [rowY, columnY] = parts(y);
  const ValueId groupX = op(Op::Div, x, 6), groupY = op(Op::Div, y, 6);
  expectAllEqual({{rowX, rowY}, {columnX, columnY}, {groupX, groupY}}, {{x, y}}, true, 20);
  expectAllEqual({{rowX, rowY}, {groupX, groupY}}, {{x, y}}, false, 20);
}

TEST_F(EquationsTest, GroupsOfRowsOfAnyWidthAreTakenApart) {
  const ValueId m = leaf(), c = leaf(), x = leaf(), y = leaf();
  for (ValueId each : {m, c})
    below(each, 1 << 20);
  std::vector<std::pair<ValueId, ValueId>> parts;
  for (ValueId tile : {x, y}) {
    below(tile, op(Op::Mul, m, c));
    const ValueId width = op(Op::Mul, c, 2), first = op(Op::Mul, op(Op::Div, tile, width), 2),
                  rest = op(Op::Rem, tile, width), rows = op(Op::Min, op(Op::Sub, m, first), 2);
    parts.emplace_back(op(Op::Add, first, op(Op::Rem, rest, rows)), op(Op::Div, rest, rows));
  }
  const auto [a, b] = parts[0];
  const auto [d, e] = parts[1];
  expectAllEqual({{a, d}, {b, e}}, {{x, y}}, true, 12);
  expectAllEqual({{a, d}}, {{x, y}}, false, 12);
}

TEST_F(EquationsTest, WhatIsTwoNumbersAtOnceIsContradictory) {
  const ValueId x = leaf(), y = leaf();
  for (ValueId each : {x, y})
    below(each, 1 << 20);
  EXPECT_TRUE(ask({{x, y}, {op(Op::Add, x, 1), y}}, {}).isContradictory);
  EXPECT_TRUE(ask({{x, number(3)}, {x, number(4)}}, {}).isContradictory);
  EXPECT_TRUE(ask({{x, y}, {op(Op::Rem, x, 7), op(Op::Add, op(Op::Rem, y, 7), 1)}}, {}).isContradictory);
  EXPECT_TRUE(ask({{op(Op::Mul, x, 2), op(Op::Add, op(Op::Mul, y, 2), 1)}}, {}).isContradictory);
  EXPECT_FALSE(ask({{op(Op::Mul, x, 2), op(Op::Add, op(Op::Mul, y, 2), 2)}}, {}).isContradictory);
  EXPECT_FALSE(ask({{op(Op::Add, x, 1), y}}, {}).isContradictory);
}

/// Sums, products, quotients and remainders of leaves below small numbers.
class RandomSums {
public:
  RandomSums(NodeTable& nodes, std::vector<ValueId> leaves, uint64_t seed)
      : nodes_(nodes), leaves_(std::move(leaves)), random_(seed) {}

  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_() % count); }

  /// With leaves of one side: the first of each pair, or the second.
  ValueId make(const std::vector<uint32_t>& choices, bool isSecond) {
    at_ = 0;
    return made(choices, 2, isSecond);
  }

private:
  ValueId made(const std::vector<uint32_t>& choices, unsigned depth, bool isSecond) {
    const auto next = [&] { return choices[at_++ % choices.size()]; };
    const uint32_t kind = next();
    if (depth == 0 || kind % 7 == 0) {
      const uint32_t which = next() % 3;
      return which == 2 ? leaves_[4] : leaves_[2 * which + isSecond];
    }
    const ValueId a = made(choices, depth - 1, isSecond), few = nodes_.constant(kUsize, 1 + next() % 6);
    switch (kind % 7) {
    case 1: return nodes_.op(Op::Mul, kUsize, a, few);
    case 2: return nodes_.op(Op::Div, kUsize, a, few);
    case 3: return nodes_.op(Op::Rem, kUsize, a, few);
    case 4: return nodes_.op(next() % 2 ? Op::Rem : Op::Div, kUsize, a, leaves_[4]);
    case 5: return nodes_.op(Op::Min, kUsize, a, few);
    default: return nodes_.op(Op::Add, kUsize, a, made(choices, depth - 1, isSecond));
    }
  }

  NodeTable& nodes_;
  std::vector<ValueId> leaves_;
  std::mt19937_64 random_;
  size_t at_ = 0;
};

TEST_F(EquationsTest, NothingFollowsThatIsNotSo) {
  const uint64_t first = base::freshSeed();
  size_t found = 0;
  for (uint64_t i = 0; i < 300 && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i));
    nodes = NodeTable();
    leaves.clear();
    conditions.clear();
    for (int j = 0; j < 5; ++j)
      leaf();
    RandomSums sums(nodes, leaves, first + i);
    for (ValueId each : leaves)
      below(each, 2 + sums.pick(5));
    std::vector<Both> given;
    for (uint32_t n = 1 + sums.pick(3); n > 0; --n) {
      std::vector<uint32_t> choices;
      for (int j = 0; j < 24; ++j)
        choices.push_back(sums.pick(1000));
      given.emplace_back(sums.make(choices, false), sums.make(choices, true));
    }
    const std::vector<Both> asked = {{leaves[0], leaves[1]}, {leaves[2], leaves[3]}};
    const Answer answer = ask(given, asked);
    found += answer.equal[0] || answer.equal[1];
    expectSound(given, asked, answer, 6);
  }
  EXPECT_GT(found, 50u);
}

}  // namespace
}  // namespace vortex::lang::flow
