// Numbers made of bits against all numbers that their leaves can be.
#include "lang/flow/race/bit_maps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/fresh_seed.h"
#include "lang/flow/value/testing/evaluate.h"
#include "lang/flow/value/testing/every_value.h"

namespace vortex::lang::flow {
namespace {

using namespace std::string_literals;
using testing::evaluate;
using testing::EveryValue;
constexpr MachineType kLeaf{5, false}, kWide{16, false};

/// One expression over the leaves of two sides, which are evaluated in different orders, so that operands may stand in another order, too.
class Sides {
public:
  explicit Sides(uint64_t seed) : random_(seed) {
    for (uint32_t i = 0; i < 4; ++i)
      leaves.push_back(nodes.argument(i, kLeaf));
  }

  using Both = std::pair<ValueId, ValueId>;
  NodeTable nodes;
  std::vector<ValueId> leaves;  ///< two of each side

  uint32_t pick(uint32_t count) { return static_cast<uint32_t>(random_() % count); }
  Both leaf(uint32_t which) { return {nodes.convert(kWide, leaves[which]), nodes.convert(kWide, leaves[2 + which])}; }
  Both with(Op op, Both a, __int128 number) {
    const ValueId b = nodes.constant(kWide, number);
    return {nodes.op(op, kWide, a.first, b), nodes.op(op, kWide, a.second, b)};
  }
  Both both(Op op, Both a, Both b) {
    return {nodes.op(op, kWide, a.first, b.first), nodes.op(op, kWide, a.second, b.second)};
  }

  /// Sums modulo 2 of bits, whichever operations say so.
  Both linear(unsigned depth) {
    if (depth == 0)
      return leaf(pick(2));
    const __int128 shift = pick(4), mask = pick(1024);
    const Both a = linear(depth - 1);
    switch (pick(12)) {
    case 0: return with(Op::Shl, a, shift);
    case 1: return with(Op::Shr, a, shift);
    case 2: return with(Op::And, a, mask | pick(1024));
    case 3: return with(Op::Mul, a, 1 << static_cast<int>(shift));
    case 4: return with(Op::Div, a, 1 << static_cast<int>(shift));
    case 5: return with(Op::Rem, a, 1 << static_cast<int>(shift + 2));
    case 6: return both(Op::Xor, a, with(pick(2) ? Op::Shr : Op::Shl, a, 1 + shift));
    case 7:  // nothing is lost or carried between numbers without a common bit
      return both(pick(2) ? Op::Or : Op::Add, with(Op::And, a, mask), with(Op::And, linear(depth - 1), 1023 & ~mask));
    case 8: return both(pick(2) ? Op::Or : Op::Add, with(Op::Shl, leaf(pick(2)), 5), leaf(pick(2)));
    case 9: return convert({static_cast<uint8_t>(6 + pick(6)), false}, a);
    default: return both(Op::Xor, a, linear(depth - 1));
    }
  }

  /// These and what loses bits or carries them.
  Both any(unsigned depth) {
    if (depth == 0 || pick(4) == 0)
      return linear(depth);
    static constexpr Op kOps[] = {Op::Add, Op::Or, Op::And, Op::Sub, Op::Xor, Op::Mul, Op::Min};
    const Both a = any(depth - 1);
    if (pick(3) == 0)
      return with(pick(2) ? Op::Mul : pick(2) ? Op::Div : Op::Rem, a, 1 + pick(12));
    return both(kOps[pick(std::size(kOps))], a, any(depth - 1));
  }

  Both convert(MachineType type, Both a) {
    return {nodes.convert(kWide, nodes.convert(type, a.first)), nodes.convert(kWide, nodes.convert(type, a.second))};
  }

private:
  std::mt19937_64 random_;
};

/// Does the number tell its leaves apart, as far as it depends on their bits? Nothing: it depends on none.
std::optional<bool> tellsApart(Sides& sides, ValueId number) {
  EveryValue all(sides.nodes);
  all.add(sides.leaves[0]);
  all.add(sides.leaves[1]);
  const std::vector<int64_t> numbers = all.of(number);
  const size_t count = numbers.size();  // 1024: row = x + 32 y
  size_t used = 0;
  for (size_t row = 0; row < count; ++row)
    for (size_t bit = 1; bit < count; bit *= 2)
      if (numbers[row] != numbers[row ^ bit])
        used |= bit;
  std::map<int64_t, size_t> bitsOf;
  for (size_t row = 0; row < count; ++row)
    if (bitsOf.try_emplace(numbers[row], row & used).first->second != (row & used))
      return false;
  return used == 0 ? std::nullopt : std::optional(true);
}

std::string describe(const NodeTable& nodes, ValueId value) {
  const Node& node = nodes[value];
  if (node.kind != NodeKind::Op)
    return node.kind == NodeKind::Convert
               ? "(" + describe(nodes, nodes.operand(value, 0)) + " as u" + std::to_string(node.type.width) + ")"
           : node.kind == NodeKind::Argument ? "xyzw"s.substr(node.number(), 1)
                                             : std::to_string(static_cast<int64_t>(node.constant()));
  static constexpr const char* kNames[] = {" + ",  " - ",  " * ", " / ", " % ", " /^ ",
                                           " << ", " >> ", " & ", " | ", " ^ ", " min "};
  return "(" + describe(nodes, nodes.operand(value, 0)) + kNames[static_cast<size_t>(node.op)] +
         describe(nodes, nodes.operand(value, 1)) + ")";
}

TEST(BitMaps, SumsOfBitsTellNumbersApartExactlyWhereNoTwoChoicesAgree) {
  const uint64_t first = base::freshSeed();
  size_t found = 0;
  for (uint64_t i = 0; i < 1500 && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i));
    Sides sides(first + i);
    const auto number = sides.linear(1 + sides.pick(3));
    const std::optional<bool> apart = tellsApart(sides, number.first);
    ValueId inner = number.first;
    while (sides.nodes[inner].kind == NodeKind::Convert)
      inner = sides.nodes.operand(inner, 0);
    const bool isLeaf = sides.nodes[inner].kind == NodeKind::Argument;  // which says nothing new
    const std::pair<ValueId, ValueId> pair = number;
    const auto equal = equalByBits(sides.nodes, {&pair, 1}, {});
    EXPECT_EQ(!equal.empty(), apart == true && !isLeaf) << describe(sides.nodes, number.first);
    found += !equal.empty();
  }
  EXPECT_GT(found, 200u);
}

/// Rows in which every leaf is below its bound, all pairs of the list are equal, and one that should be is not.
size_t contradictions(Sides& sides, std::span<const Sides::Both> given, std::span<const Sides::Both> equal,
                      const BitBounds& below) {
  constexpr int kNumbers = 12;  // of 32, at random: all would be a million rows
  size_t wrong = 0;
  NodeTable& nodes = sides.nodes;
  const auto isEqual = [&](const Sides::Both& pair, const auto& row) {
    return evaluate(nodes, pair.first, row) == evaluate(nodes, pair.second, row);
  };
  std::vector<std::array<int64_t, 2>> halves;
  for (int i = 0; i < kNumbers * kNumbers; ++i)
    halves.push_back({sides.pick(32), sides.pick(32)});
  std::map<std::vector<__int128>, std::vector<std::array<int64_t, 2>>> byNumber;  // of the first side
  const auto isBelow = [&](ValueId leaf, int64_t number) {
    const auto bound = below.find(leaf);
    return bound == below.end() || number < bound->second;
  };
  for (const auto& one : halves)
    for (const auto& other : halves) {
      const std::array<int64_t, 4> row = {one[0], one[1], other[0], other[1]};
      bool holds = true;
      for (size_t i = 0; i < 4; ++i)
        holds = holds && isBelow(sides.leaves[i], row[i]);
      if (holds && std::all_of(given.begin(), given.end(), [&](const auto& pair) { return isEqual(pair, row); }))
        wrong += !std::all_of(equal.begin(), equal.end(), [&](const auto& pair) { return isEqual(pair, row); });
    }
  return wrong;
}

TEST(BitMaps, WhatIsSaidToBeEqualIs) {
  const uint64_t first = base::freshSeed();
  size_t found = 0;
  for (uint64_t i = 0; i < 300 && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i));
    Sides sides(first + i);
    std::vector<Sides::Both> given;
    for (uint32_t n = 1 + sides.pick(2); n > 0; --n)
      given.push_back(sides.any(1 + sides.pick(2)));
    BitBounds below;
    for (ValueId leaf : sides.leaves)
      if (sides.pick(3) == 0)
        below[leaf] = 1 + sides.pick(31);
    const auto equal = equalByBits(sides.nodes, given, below);
    found += !equal.empty();
    EXPECT_EQ(contradictions(sides, given, equal, below), 0u);
  }
  EXPECT_GT(found, 30u);
}

class BitMapPairs : public ::testing::Test {
protected:
  size_t pairs(std::vector<Sides::Both> given, const BitBounds& below = {}) {
    return equalByBits(sides.nodes, given, below).size();
  }
  Sides sides{1};
};

TEST_F(BitMapPairs, SeveralNumbersTellTogetherWhatNoneDoesAlone) {
  const auto x = sides.leaf(0), y = sides.leaf(1);
  const auto low = sides.with(Op::Rem, x, 4), high = sides.with(Op::Div, x, 4), mixed = sides.both(Op::Xor, x, y);
  EXPECT_EQ(pairs({low}), 1u) << "of the low bits";
  EXPECT_EQ(pairs({low, high}), 1u);
  EXPECT_EQ(pairs({mixed}), 0u);
  EXPECT_EQ(pairs({mixed, low}), 0u);
  EXPECT_EQ(pairs({mixed, low, high}), 2u);
}

TEST_F(BitMapPairs, BoundsSayWhichBitsAreClear) {
  const auto x = sides.leaf(0), y = sides.leaf(1);
  const auto sum = sides.both(Op::Add, sides.with(Op::Mul, x, 4), y);
  const auto bounds = [&](__int128 most) { return BitBounds{{sides.leaves[1], most}, {sides.leaves[3], most}}; };
  EXPECT_EQ(pairs({sum}), 0u);
  EXPECT_EQ(pairs({sum}, bounds(4)), 2u);
  EXPECT_EQ(pairs({sum}, bounds(5)), 0u);
  EXPECT_EQ(pairs({sum}, {{sides.leaves[1], 4}}), 0u) << "of one side only";
}

TEST_F(BitMapPairs, OperandsThatTheSidesHaveInDifferentOrdersAreMatched) {
  NodeTable& nodes = sides.nodes;
  // The node table puts the older operand first, and on the second side the other one is older.
  const ValueId b = nodes.convert(kWide, sides.leaves[3]), a = nodes.convert(kWide, sides.leaves[0]),
                highB = nodes.op(Op::Shl, kWide, nodes.convert(kWide, sides.leaves[2]), nodes.constant(kWide, 5)),
                highA = nodes.op(Op::Shl, kWide, nodes.convert(kWide, sides.leaves[1]), nodes.constant(kWide, 5));
  EXPECT_EQ(pairs({{nodes.op(Op::Or, kWide, a, highA), nodes.op(Op::Or, kWide, highB, b)}}), 2u);
}

}  // namespace
}  // namespace vortex::lang::flow
