#include "base/fresh_seed.h"
#include "lang/flow/value/testing/every_value.h"
#include "lang/flow/value/value.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace vortex::lang::flow {
namespace {

using testing::kI8;
using testing::kU8;
constexpr MachineType kU16{16, false}, kI16{16, true}, kU32{32, false}, kI32{32, true}, kI64{64, true};

/// Nodes, conditions of the one point and answers there.
class ValuesTest : public ::testing::Test {
protected:
  ValueId number(__int128 value, MachineType type = kUsize) { return nodes.constant(type, value); }
  ValueId op(Op op, ValueId a, ValueId b) { return nodes.op(op, nodes.type(a), a, b); }
  ValueId add(ValueId a, __int128 b) { return op(Op::Add, a, number(b, nodes.type(a))); }
  ValueId remainder(ValueId a, __int128 b) { return op(Op::Rem, a, number(b, nodes.type(a))); }
  ValueId compare(Op op, ValueId a, ValueId b) { return nodes.op(op, kBool, a, b); }
  ValueId argument(MachineType type) { return nodes.argument(static_cast<uint32_t>(nodes.size()), type); }
  void where(ValueId condition, bool holds = true) { conditions.push_back({condition, holds}); }

  Values& values() {
    if (!values_)
      values_ = std::make_unique<Values>(
          nodes,
          Surroundings{.conditions = [this](PointId) { return conditions; },
                       .counter = [this](ValueId phi) -> std::optional<LoopCounter> {
                         return counters.contains(phi) ? std::optional(counters[phi]) : std::nullopt;
                       },
                       .backEdge = [](ValueId, size_t operand) -> std::optional<PointId> {
                         return operand == 0 ? std::nullopt : std::optional(kPoint);
                       }},
          launch);
    return *values_;
  }
  Truth equal(ValueId a, ValueId b) { return values().equal(a, b, kPoint); }
  Truth differ(ValueId a, ValueId b) { return values().differ(a, b, kPoint); }
  Truth less(ValueId a, ValueId b) { return values().less(a, b, kPoint); }
  ValueId counter(ValueId begin, ValueId end, __int128 step = 1) {
    const ValueId phi = nodes.phi(nodes.type(begin), kNoBlock);
    counters[phi] = {.begin = begin, .end = end, .step = number(step, nodes.type(begin)), .list = {}};
    return phi;
  }

  static constexpr PointId kPoint{0};
  NodeTable nodes;
  std::vector<Condition> conditions;
  std::map<ValueId, LoopCounter> counters;
  LaunchFacts launch;

private:
  std::unique_ptr<Values> values_;
};

TEST_F(ValuesTest, PositionsGoUpToTheLastOne) {
  launch.blockDim[0] = number(32);
  launch.gridDim[1] = number(5);
  EXPECT_TRUE(values().range(nodes.position(PositionKind::ThreadId, 0), kPoint).high == 31);
  EXPECT_TRUE(values().range(nodes.position(PositionKind::BlockId, 1), kPoint).high == 4);
}

TEST_F(ValuesTest, OnlyBlocksInConstantsHaveMoreThreadsThanProofsCountOn) {
  const ValueId threads[] = {nodes.position(PositionKind::ThreadId, 0), nodes.position(PositionKind::ThreadId, 1),
                             nodes.position(PositionKind::ThreadId, 2)};
  launch.blockDim[0] = number(70000);
  launch.blockDim[1] = nodes.extent(0);
  EXPECT_TRUE(values().range(threads[0], kPoint).high == 69999);
  EXPECT_TRUE(values().range(threads[1], kPoint).high == kMostThreadsOfBlock - 1) << "of an extent";
  EXPECT_TRUE(values().range(threads[2], kPoint).high == kMostThreadsOfBlock - 1) << "of a launch";
  EXPECT_EQ(less(threads[0], number(65536)), Truth::Unknown);
  EXPECT_EQ(less(threads[1], number(65536)), Truth::Yes);
  EXPECT_FALSE(values().form(nodes.convert(kU16, threads[0]), kPoint).isExact);
  EXPECT_TRUE(values().form(nodes.convert(kU16, threads[1]), kPoint).isExact);
}

TEST_F(ValuesTest, BlocksOfAnAxisEndAtTheirLargestNumber) {
  launch.gridDim[0] = nodes.extent(0);
  launch.gridDim[1] = argument(kU8);
  for (const auto& [axis, most] : {std::pair(0u, kMostBlocksOfAxis), std::pair(1u, __int128(255))}) {
    const ValueId block = nodes.position(PositionKind::BlockId, axis);
    EXPECT_TRUE(values().range(block, kPoint).high == most - 1) << axis;
    EXPECT_EQ(less(block, nodes.position(PositionKind::GridDim, axis)), Truth::Yes);
  }
}

TEST_F(ValuesTest, QuotientsOfWhatIsBelowAProductAreBelowItsFactors) {
  const ValueId m = nodes.extent(0), c = nodes.extent(1), g = argument(kUsize), h = argument(kUsize);
  launch.products.push_back({{m, c}, kMostElements});
  where(compare(Op::Lt, g, op(Op::Mul, m, c)));
  where(compare(Op::Le, h, op(Op::Mul, m, c)));
  const auto group = [&](ValueId number) { return op(Op::Div, number, op(Op::Mul, this->number(3), c)); };
  const auto scaled = [&](ValueId number, __int128 by) { return op(Op::Mul, group(number), this->number(by)); };
  EXPECT_EQ(less(scaled(g, 3), m), Truth::Yes) << "x / (3 c) * 3";
  EXPECT_EQ(less(scaled(g, 4), m), Truth::Unknown);
  EXPECT_EQ(less(scaled(h, 3), m), Truth::Unknown) << "h may be m * c";
  EXPECT_EQ(less(number(0), m), Truth::Yes) << "a product that is not 0";
  EXPECT_EQ(less(number(0), c), Truth::Yes);
  EXPECT_EQ(less(number(0), op(Op::Min, op(Op::Sub, m, scaled(g, 3)), number(3))), Truth::Yes);
}

TEST_F(ValuesTest, NeighboursDifferUnlessACastOrAWholeTurnMakesThemOne) {
  const ValueId i = argument(kUsize), j = argument(kU8);
  EXPECT_EQ(differ(i, add(i, 1)), Truth::Yes);
  EXPECT_EQ(differ(nodes.convert(kU8, i), nodes.convert(kU8, add(i, 1))), Truth::Yes);
  EXPECT_EQ(differ(nodes.convert(kU8, i), nodes.convert(kU8, add(i, 256))), Truth::No);
  EXPECT_EQ(
      differ(nodes.convert(kUsize, nodes.convert(kU8, i)), nodes.convert(kUsize, nodes.convert(kU8, add(i, 256)))),
      Truth::Unknown);
  const __int128 half = __int128(1) << 63;
  EXPECT_EQ(differ(i, add(add(i, half), half)), Truth::No);
  EXPECT_EQ(differ(j, add(add(j, 128), 128)), Truth::No);
  EXPECT_EQ(differ(nodes.convert(kUsize, j), add(nodes.convert(kUsize, j), 256)), Truth::Yes);
}

TEST_F(ValuesTest, RemaindersOfWhatWrapsAreKnownOnlyModuloPowersOfTwo) {
  const ValueId s = argument(kU8);
  EXPECT_EQ(differ(remainder(s, 3), remainder(add(s, 1), 3)), Truth::Unknown);
  EXPECT_EQ(differ(remainder(s, 4), remainder(add(s, 1), 4)), Truth::Yes);
  EXPECT_EQ(differ(remainder(add(s, 3), 6), remainder(add(s, 2), 6)), Truth::Yes) << "6 and 256 share 2";
}

TEST_F(ValuesTest, AConditionExcludesTheWrap) {
  const ValueId s = argument(kU8);
  where(compare(Op::Lt, s, number(255, kU8)));
  EXPECT_EQ(differ(remainder(s, 3), remainder(add(s, 1), 3)), Truth::Yes);
  EXPECT_EQ(differ(remainder(s, 3), remainder(add(s, 2), 3)), Truth::Unknown);
}

TEST_F(ValuesTest, DivisionByWhatMayBeZeroBoundsNothing) {
  const ValueId a = argument(kU8), n = argument(kU8);
  const ValueId r = op(Op::Rem, a, n), rest = op(Op::Sub, a, op(Op::Mul, n, op(Op::Div, a, n)));
  EXPECT_EQ(less(r, n), Truth::Unknown);
  EXPECT_EQ(equal(r, rest), Truth::Unknown);
  const ValueId up = op(Op::CeilDiv, a, n);
  EXPECT_NE(less(op(Op::Mul, nodes.convert(kUsize, up), nodes.convert(kUsize, n)), nodes.convert(kUsize, a)),
            Truth::No);
}

TEST_F(ValuesTest, QuotientsOfSumsAreThoseOfTheirMultiplesAndOfTheRest) {
  const ValueId block = nodes.convert(kUsize, argument(kU8)), thread = nodes.convert(kUsize, argument(kU8));
  const ValueId n = nodes.convert(kUsize, argument(kU8));
  const auto sum = [&](ValueId unit) { return op(Op::Add, op(Op::Mul, block, unit), thread); };
  const auto parts = [&](ValueId by, ValueId high) { return op(Op::Add, high, op(Op::Div, thread, by)); };
  const ValueId warp = number(32);
  EXPECT_EQ(equal(op(Op::Div, sum(number(256)), warp), parts(warp, op(Op::Mul, block, number(8)))), Truth::Yes);
  EXPECT_EQ(equal(op(Op::Rem, sum(number(256)), warp), op(Op::Rem, thread, warp)), Truth::Yes);
  EXPECT_EQ(equal(op(Op::Div, sum(number(48)), warp), parts(warp, block)), Truth::Unknown) << "48 is no multiple of 32";
  EXPECT_EQ(equal(op(Op::Div, sum(n), n), parts(n, block)), Truth::Unknown) << "n may be 0";
  const ValueId below = op(Op::Sub, op(Op::Mul, block, number(64)), thread);
  EXPECT_NE(equal(op(Op::Div, below, warp), op(Op::Sub, op(Op::Mul, block, number(2)), op(Op::Div, thread, warp))),
            Truth::Yes)
      << "rounded the other way";
}

TEST_F(ValuesTest, QuotientsByWhatMayBeZeroDoNotReachTheirDividend) {
  const ValueId a = nodes.convert(kUsize, argument(kU8)), n = nodes.convert(kUsize, argument(kU8));
  const ValueId above = op(Op::Add, op(Op::Mul, n, op(Op::Div, a, n)), n);
  EXPECT_EQ(less(a, above), Truth::Unknown) << "0 is not above 5";
}

TEST_F(ValuesTest, BitsThatAreComparedWithAnotherNumberSayNothing) {
  const ValueId x = argument(kU8), bit = op(Op::And, x, number(8, kU8));
  where(compare(Op::Eq, bit, number(3, kU8)), false);
  EXPECT_EQ(less(remainder(x, 16), number(8, kU8)), Truth::Unknown) << "it never is 3";
}

TEST_F(ValuesTest, BoundsOfMultiplesAreRoundedTowardsTheNumbersThereAre) {
  const ValueId x = argument(kU8), wide = nodes.convert(kUsize, x);
  where(compare(Op::Le, op(Op::Mul, wide, number(2)), number(5)));
  EXPECT_EQ(values().range(x, kPoint).high, 2);
}

TEST_F(ValuesTest, DivisionByWhatIsNotZeroBounds) {
  const ValueId a = argument(kU8), n = argument(kU8);
  where(compare(Op::Eq, n, number(0, kU8)), false);
  const ValueId r = op(Op::Rem, a, n), rest = op(Op::Sub, a, op(Op::Mul, n, op(Op::Div, a, n)));
  EXPECT_EQ(less(r, n), Truth::Yes);
  EXPECT_EQ(equal(r, rest), Truth::Yes);
  const ValueId up = op(Op::CeilDiv, a, n);
  EXPECT_EQ(less(op(Op::Mul, nodes.convert(kUsize, up), nodes.convert(kUsize, n)), nodes.convert(kUsize, a)),
            Truth::No);
}

TEST_F(ValuesTest, QuotientsOfNumbersWithOneRemainderKeepTheirOrder) {
  const ValueId a = argument(kU8), b = argument(kU8), c = argument(kU8);
  for (ValueId each : {a, b})
    where(compare(Op::Eq, remainder(each, 3), number(1, kU8)));
  where(compare(Op::Lt, a, b));
  where(compare(Op::Lt, b, c));
  const auto third = [&](ValueId value) { return op(Op::Div, value, number(3, kU8)); };
  EXPECT_EQ(less(third(a), third(b)), Truth::Yes);
  EXPECT_EQ(less(third(b), third(c)), Truth::Unknown) << "4 and 5 both have 1";
}

TEST_F(ValuesTest, QuotientsOfNegativeNumbersAreNotDigits) {
  const ValueId x = argument(kI8);
  where(compare(Op::Lt, x, number(31, kI8)));
  where(compare(Op::Lt, number(-31, kI8), x));
  const ValueId sum = add(op(Op::Mul, x, number(4, kI8)), 1);
  EXPECT_EQ(equal(op(Op::Div, sum, number(4, kI8)), x), Truth::Unknown) << "-3 / 4 is 0, not -1";
  EXPECT_EQ(equal(remainder(sum, 4), number(1, kI8)), Truth::Unknown);
}

TEST_F(ValuesTest, EqualModuloANarrowTypeIsNotEqual) {
  const ValueId wide = add(argument(kU16), 40000);
  EXPECT_EQ(equal(nodes.convert(kU8, wide), wide), Truth::Unknown);
  EXPECT_EQ(equal(nodes.convert(kU8, wide), nodes.convert(kU8, nodes.convert(kI16, wide))), Truth::Yes);
}

TEST_F(ValuesTest, StepsInBetweenMayWrap) {
  const ValueId i = argument(kUsize);
  const ValueId before = op(Op::Sub, i, number(1));
  EXPECT_TRUE(values().form(add(before, 1), kPoint).isExact);
  EXPECT_FALSE(values().form(before, kPoint).isExact);
}

TEST_F(ValuesTest, RowsAndColumnsAreDigitsWhereTheirProductFitsMemory) {
  const ValueId rows = nodes.extent(0), columns = nodes.extent(1), row = argument(kUsize), column = argument(kUsize);
  launch.products.push_back({{rows, columns}, kMostElements});
  where(compare(Op::Lt, row, rows));
  where(compare(Op::Lt, column, columns));
  const ValueId flat = op(Op::Add, op(Op::Mul, row, columns), column);
  EXPECT_EQ(less(flat, op(Op::Mul, rows, columns)), Truth::Yes);
  EXPECT_EQ(equal(op(Op::Div, flat, columns), row), Truth::Yes);
  EXPECT_EQ(equal(op(Op::Rem, flat, columns), column), Truth::Yes);
}

TEST_F(ValuesTest, RowsTimesAnArgumentMayWrap) {
  const ValueId n = argument(kU32), row = argument(kU32), column = argument(kU32);
  where(compare(Op::Lt, column, n));
  const ValueId flat = op(Op::Add, op(Op::Mul, row, n), column);
  EXPECT_NE(equal(op(Op::Rem, flat, n), column), Truth::Yes);
  EXPECT_EQ(differ(flat, add(flat, 1)), Truth::Yes);
}

TEST_F(ValuesTest, ProductsOfArgumentsThatMayBeNegativeAreNotBounded) {
  const ValueId rows = argument(kI32), columns = argument(kI32), sizes[] = {nodes.extent(0), nodes.extent(1)};
  launch.products.push_back({{rows, columns}, 1000});
  launch.products.push_back({{sizes[0], sizes[1]}, 1000});
  const ValueId product = op(Op::Mul, nodes.convert(kI64, rows), nodes.convert(kI64, columns));
  EXPECT_EQ(less(product, number(1001, kI64)), Truth::Unknown) << "-100 times -100";
  EXPECT_EQ(less(number(-1, kI64), product), Truth::Unknown);
  EXPECT_FALSE(values().form(op(Op::Mul, rows, columns), kPoint).isExact);
  EXPECT_EQ(less(op(Op::Mul, sizes[0], sizes[1]), number(1001)), Truth::Yes);
  EXPECT_EQ(less(op(Op::Mul, sizes[0], sizes[0]), number(1001)), Truth::Unknown) << "one factor, twice";
}

TEST_F(ValuesTest, OneFactorThatMayBeNegativeIsEnough) {
  const ValueId rows = argument(kI32), columns = argument(kI32);
  launch.products.push_back({{rows, columns}, 1000});
  where(compare(Op::Le, number(0, kI32), rows));
  EXPECT_FALSE(values().form(op(Op::Mul, rows, columns), kPoint).isExact);
  EXPECT_EQ(less(nodes.convert(kI64, op(Op::Mul, rows, columns)), number(1001, kI64)), Truth::Unknown);
}

TEST_F(ValuesTest, ProductsOfArgumentsAreBoundedWhereConditionsSaySo) {
  const ValueId rows = argument(kI32), columns = argument(kI32), other = argument(kI8);
  launch.products.push_back({{rows, columns}, 1000});
  for (ValueId each : {rows, columns})
    where(compare(Op::Le, number(0, kI32), each));
  const ValueId product = op(Op::Mul, rows, columns);
  EXPECT_TRUE(values().form(product, kPoint).isExact);
  EXPECT_EQ(less(product, number(1001, kI32)), Truth::Yes);
  EXPECT_EQ(less(product, number(1000, kI32)), Truth::Unknown);
  // A factor more, of any sign, and parts of the factors.
  const ValueId more = op(Op::Mul, product, nodes.convert(kI32, other));
  EXPECT_TRUE(values().range(more, kPoint).low == -128000);
  EXPECT_TRUE(values().range(more, kPoint).high == 127000);
}

TEST_F(ValuesTest, PartsOfSizesAreBoundedWithThem) {
  const ValueId rows = nodes.extent(0), columns = nodes.extent(1), height = argument(kI32);
  launch.products.push_back({{rows, columns}, 1000});
  launch.products.push_back({{height, columns}, 1000});
  const ValueId tiles = op(Op::CeilDiv, rows, number(64)), rest = op(Op::Rem, columns, argument(kUsize));
  EXPECT_EQ(less(op(Op::Mul, tiles, rest), number(1001)), Truth::Yes);
  const ValueId half = nodes.convert(kI64, op(Op::Div, height, number(2, kI32)));
  EXPECT_EQ(less(op(Op::Mul, half, nodes.convert(kI64, columns)), number(1001, kI64)), Truth::Unknown)
      << "of a number that may be negative";
}

TEST_F(ValuesTest, QuotientsThatMayBeNegativeAreNoPartsOfSizes) {
  const ValueId rows = argument(kI64), columns = argument(kI64), by = argument(kI64);
  launch.products.push_back({{rows, columns}, 1000});
  for (ValueId each : {rows, columns})
    where(compare(Op::Le, number(0, kI64), each));
  EXPECT_TRUE(values().range(op(Op::Mul, rows, columns), kPoint).high == 1000);
  EXPECT_EQ(less(op(Op::Mul, op(Op::Div, rows, by), columns), number(0, kI64)), Truth::Unknown);
}

TEST_F(ValuesTest, ExchangedBitsMakeAnotherNumberWhereOneIsSet) {
  const ValueId i = argument(kU32), mask = argument(kU32), j = argument(kI8);
  for (ValueId bits : {number(1, kU32), number(12, kU32)}) {
    EXPECT_EQ(differ(op(Op::Xor, i, bits), i), Truth::Yes);
    EXPECT_EQ(differ(i, op(Op::Xor, bits, i)), Truth::Yes);
  }
  EXPECT_EQ(differ(op(Op::Xor, i, mask), i), Truth::Unknown) << "no bit may be set";
  EXPECT_EQ(differ(op(Op::Or, i, number(1, kU32)), i), Truth::Unknown);
  EXPECT_EQ(differ(op(Op::Xor, i, number(1, kU32)), add(i, 1)), Truth::Unknown);
  EXPECT_EQ(differ(op(Op::Xor, j, number(-128, kI8)), j), Truth::Yes);
  EXPECT_EQ(differ(nodes.convert(kU8, op(Op::Xor, i, number(256, kU32))), nodes.convert(kU8, i)), Truth::Unknown);
}

TEST_F(ValuesTest, ExchangedBitsOfAMaskThatIsNotZero) {
  const ValueId i = argument(kU32), mask = argument(kU32);
  where(compare(Op::Lt, number(0, kU32), mask));
  EXPECT_EQ(differ(op(Op::Xor, mask, i), i), Truth::Yes);
  EXPECT_EQ(differ(op(Op::Xor, mask, i), mask), Truth::Unknown);
}

TEST_F(ValuesTest, ThreadsStayInsideTheirGrid) {
  const ValueId global = nodes.position(PositionKind::ThreadGlobalId),
                local = nodes.position(PositionKind::ThreadLocalId);
  launch.blockDim = {number(32), number(8), number(1)};
  EXPECT_EQ(less(local, number(256)), Truth::Yes);
  EXPECT_EQ(less(nodes.position(PositionKind::WarpId), number(8)), Truth::Yes);
  EXPECT_EQ(equal(nodes.position(PositionKind::WarpId), nodes.position(PositionKind::ThreadId, 1)), Truth::Yes);
  EXPECT_EQ(equal(nodes.position(PositionKind::LaneId), nodes.position(PositionKind::ThreadId, 0)), Truth::Yes);
  EXPECT_TRUE(values().form(global, kPoint).isExact);
  EXPECT_FALSE(values().form(nodes.convert(kU32, global), kPoint).isExact);
}

TEST_F(ValuesTest, AQuotientAndARemainderMakeANumber) {
  const ValueId x = argument(kU32), warp = op(Op::Div, x, number(32, kU32));
  where(compare(Op::Eq, remainder(x, 32), number(5, kU32)));  // known before the quotient is
  where(compare(Op::Eq, warp, number(3, kU32)));
  const ValueId y = argument(kU32);
  where(compare(Op::Le, op(Op::Div, y, number(7, kU32)), number(1, kU32)));
  EXPECT_EQ(equal(x, number(101, kU32)), Truth::Yes);
  EXPECT_EQ(less(y, number(14, kU32)), Truth::Yes);
  EXPECT_EQ(less(y, number(13, kU32)), Truth::Unknown);
}

TEST_F(ValuesTest, QuotientsOfNegativeNumbersSayNothingOfThem) {
  const ValueId z = argument(kI32);
  where(compare(Op::Eq, op(Op::Div, z, number(32, kI32)), number(0, kI32)));
  EXPECT_EQ(less(number(-1, kI32), z), Truth::Unknown);
}

TEST_F(ValuesTest, CountersStayInTheirRange) {
  const ValueId n = nodes.extent(0), i = counter(number(0), n), j = counter(number(0), number(64), 16);
  EXPECT_EQ(less(i, n), Truth::Yes);
  EXPECT_EQ(less(add(j, 15), number(64)), Truth::Yes);
  EXPECT_EQ(equal(remainder(j, 16), number(0)), Truth::Yes);
  const ValueId buffer = remainder(i, 3), next = remainder(add(i, 1), 3);
  EXPECT_EQ(differ(buffer, next), Truth::Yes);
  const ValueId k = counter(number(0, kU8), argument(kU8));
  EXPECT_EQ(differ(remainder(k, 3), remainder(add(k, 1), 3)), Truth::Yes) << "below an end of its type";
  EXPECT_EQ(differ(remainder(k, 3), remainder(add(k, 2), 3)), Truth::Unknown);
}

TEST_F(ValuesTest, CountersThatFallStayInTheirRange) {
  const ValueId n = argument(kI32), step = argument(kI32);
  const ValueId k = counter(number(100, kI32), number(-1, kI32), -1), j = counter(n, number(0, kI32), -3);
  EXPECT_EQ(less(k, number(101, kI32)), Truth::Yes);
  EXPECT_EQ(less(k, number(100, kI32)), Truth::Unknown);
  EXPECT_EQ(less(number(-1, kI32), k), Truth::Yes);
  EXPECT_EQ(less(number(0, kI32), k), Truth::Unknown);
  EXPECT_EQ(less(n, j), Truth::No);
  EXPECT_EQ(less(number(0, kI32), j), Truth::Yes);
  EXPECT_EQ(differ(k, number(100, kI32)), Truth::Unknown);
  const ValueId either = counter(number(100, kI32), number(0, kI32), 1);
  counters[either].step = step;
  EXPECT_EQ(less(either, number(0, kI32)), Truth::Unknown);
  EXPECT_EQ(less(number(100, kI32), either), Truth::Unknown);
}

TEST_F(ValuesTest, AStrideThatMayJumpOverTheEndWraps) {
  const ValueId n = argument(kU32), stride = argument(kU32), phi = nodes.phi(kU32, kNoBlock);
  nodes.setPhiOperands(phi, {number(0, kU32), op(Op::Add, phi, stride)});
  where(compare(Op::Lt, phi, n));
  EXPECT_FALSE(values().form(phi, kPoint).isExact);
}

TEST_F(ValuesTest, AGridStrideBelowAnExtentIsExact) {
  const ValueId size = nodes.extent(0), begin = nodes.position(PositionKind::ThreadGlobalId);
  const ValueId stride = op(Op::Mul, nodes.position(PositionKind::BlockDim), nodes.position(PositionKind::GridDim));
  const ValueId phi = nodes.phi(kUsize, kNoBlock);
  nodes.setPhiOperands(phi, {begin, op(Op::Add, phi, stride)});
  where(compare(Op::Lt, phi, size));
  EXPECT_TRUE(values().form(phi, kPoint).isExact);
  EXPECT_EQ(less(phi, size), Truth::Yes);
}

TEST_F(ValuesTest, ShiftsAndMasksByOneNumberAreQuotientsAndRemainders) {
  const ValueId t = argument(kUsize), s = argument(kUsize), half = op(Op::Shl, number(1), s);
  const ValueId high = op(Op::Shr, t, s), low = op(Op::And, t, op(Op::Sub, half, number(1)));
  where(compare(Op::Lt, s, number(16)));
  where(compare(Op::Lt, t, number(1000)));
  EXPECT_EQ(equal(high, op(Op::Div, t, half)), Truth::Yes);
  EXPECT_EQ(equal(low, op(Op::Rem, t, half)), Truth::Yes);
  const ValueId apart = op(Op::Shl, high, add(s, 1));
  EXPECT_EQ(equal(op(Op::Or, apart, low), op(Op::Add, apart, low)), Truth::Yes);
}

TEST_F(ValuesTest, AMaskIsARemainderOnlyOfAPowerOfTwo) {
  const ValueId t = argument(kUsize), half = argument(kUsize), less = op(Op::Sub, half, number(1));
  where(compare(Op::Lt, number(0), half));
  EXPECT_EQ(equal(op(Op::And, t, less), op(Op::Rem, t, half)), Truth::Unknown);
}

TEST_F(ValuesTest, AnAssertedPowerOfTwoMakesItsMaskARemainder) {
  const ValueId t = argument(kUsize), half = argument(kUsize), less = op(Op::Sub, half, number(1));
  where(compare(Op::Lt, number(0), half));
  where(compare(Op::Eq, op(Op::And, half, less), number(0)));
  EXPECT_EQ(equal(op(Op::And, t, less), op(Op::Rem, t, half)), Truth::Yes);
  EXPECT_EQ(equal(op(Op::And, t, nodes.complement(less)), op(Op::Mul, op(Op::Div, t, half), half)), Truth::Yes);
}

TEST_F(ValuesTest, APowerThatMayBe0IsNoMask) {
  const ValueId t = argument(kUsize), half = argument(kUsize), less = op(Op::Sub, half, number(1));
  where(compare(Op::Eq, op(Op::And, half, less), number(0)));
  EXPECT_EQ(equal(op(Op::And, t, less), op(Op::Rem, t, half)), Truth::Unknown);
}

TEST_F(ValuesTest, HalvingIsAList) {
  const ValueId phi = nodes.phi(kUsize, kNoBlock);
  nodes.setPhiOperands(phi, {number(64), op(Op::Div, phi, number(2))});
  where(compare(Op::Lt, number(0), phi));
  EXPECT_EQ(values().listOf(phi), (std::vector<__int128>{64, 32, 16, 8, 4, 2, 1, 0}));
  EXPECT_EQ(less(phi, number(65)), Truth::Yes);
  EXPECT_EQ(less(number(0), phi), Truth::Yes);
}

/// x = y has a solution under x % m = a and y % n = b where a and b agree modulo every number that divides m and n.
TEST_F(ValuesTest, RemaindersOfOneNumberAgreeModuloWhatDividesTheirDivisors) {
  const ValueId x = argument(kUsize), y = argument(kUsize);
  const Polynomial zeros[] = {*Polynomial::sum(values().integer(x, kPoint), values().integer(y, kPoint), -1)};
  for (const auto& [m, n] : {std::pair(4, 8), std::pair(8, 4), std::pair(3, 6), std::pair(4, 6), std::pair(3, 4)})
    for (int a = 0; a < m; ++a)
      for (int b = 0; b < n; ++b) {
        const PointId point = values().assume(kPoint, {{compare(Op::Eq, remainder(x, m), number(a)), true},
                                                       {compare(Op::Eq, remainder(y, n), number(b)), true}});
        const bool mayBeEqual = (a - b) % std::gcd(m, n) == 0, isDivisor = m % n == 0 || n % m == 0;
        const bool isExcluded = values().areNeverAllZero(zeros, point);
        EXPECT_FALSE(isExcluded && mayBeEqual) << a << " of " << m << ", " << b << " of " << n;
        EXPECT_TRUE(isExcluded || mayBeEqual || !isDivisor) << a << " of " << m << ", " << b << " of " << n;
      }
}

/// `while i < n { i += s }` and the like in eight bits, run from every begin to every end.
TEST(Induction, HoldsInEveryIteration) {
  std::mt19937 random(base::freshSeed());
  for (int trial = 0; trial < 60; ++trial) {
    NodeTable nodes;
    const MachineType type{8, trial % 2 == 1};
    const ValueId begin = nodes.argument(0, type), end = nodes.argument(1, type), phi = nodes.phi(type, kNoBlock);
    const int step = static_cast<int>(random() % 41) - 20, slack = static_cast<int>(random() % 30);
    constexpr Op kTests[] = {Op::Lt, Op::Le};
    const Op test = kTests[random() % 2];
    const ValueId next = nodes.op(Op::Add, type, phi, nodes.constant(type, step));
    const ValueId bounded = random() % 2 ? nodes.op(Op::Min, type, end, nodes.constant(type, 127 - slack)) : end;
    const ValueId left = step < 0 ? bounded : phi, right = step < 0 ? phi : bounded;
    const ValueId condition = nodes.op(test, kBool, left, right);
    nodes.setPhiOperands(phi, {begin, next});
    Values values(nodes, {.conditions = [&](PointId) { return std::vector{Condition{condition, true}}; },
                          .backEdge = [](ValueId, size_t operand) -> std::optional<PointId> {
                            return operand == 0 ? std::nullopt : std::optional(PointId{0});
                          }});
    const Form form = values.form(phi, PointId{0});
    const Interval range = values.range(phi, PointId{0});
    for (__int128 b = type.lowest(); b <= type.highest(); ++b)
      for (__int128 n = type.lowest(); n <= type.highest(); ++n) {
        const __int128 limit = bounded == end ? n : std::min<__int128>(n, 127 - slack);
        __int128 i = b;
        for (int count = 0; count < 300; ++count) {
          const __int128 x = step < 0 ? limit : i, y = step < 0 ? i : limit;
          if (!(test == Op::Lt ? x < y : x <= y))
            break;
          ASSERT_TRUE(range.low <= i && i <= range.high);
          __int128 sum = 0;
          for (const auto& [monomial, coefficient] : form.polynomial.terms()) {
            __int128 product = coefficient;
            for (ValueId leaf : monomial)
              product *= leaf == begin ? b : leaf == end ? n : leaf == phi ? i : count;
            sum += product;
          }
          ASSERT_TRUE(type.wrap(sum) == i) << trial;
          ASSERT_TRUE(!form.isExact || sum == i) << "step " << step << " slack " << slack;
          i = type.wrap(i + step);
        }
      }
  }
}

}  // namespace
}  // namespace vortex::lang::flow
