#include "layout/conversion.h"

#include "layout/fragments.h"
#include "layout/random_layout.h"

#include <gtest/gtest.h>

#include <map>

namespace vortex::layout {
namespace {

/// Runs the rounds: values[lane][register] is the flat element.
std::vector<std::vector<Bits>> exchange(const Layout& from, const Layout& to, const ShuffleRounds& rounds) {
  Bits lanes = Bits(1) << from.inBits(In::Lane), registers = Bits(1) << from.inBits(In::Register);
  std::vector<std::vector<Bits>> before(lanes), after(lanes, std::vector<Bits>(registers, ~Bits(0)));
  for (Bits lane = 0; lane < lanes; ++lane)
    for (Bits reg = 0; reg < registers; ++reg)
      before[lane].push_back(from.applyFlat({.reg = reg, .lane = lane}));
  for (Bits round = 0; round < rounds.rounds; ++round)
    for (Bits lane = 0; lane < lanes; ++lane) {
      ShuffleStep own = shuffleStep(from, to, rounds, round, lane);
      ShuffleStep other = shuffleStep(from, to, rounds, round, own.source);
      for (Bits part = 0; part < rounds.packedElements; ++part) {
        // The packed vector's registers on both sides.
        Bits vector = applyColumns(rounds.packed, part);
        Bits atFrom = *Span(from.columns(In::Register)).combination(vector);
        Bits atTo = *Span(to.columns(In::Register)).combination(vector);
        after[lane][own.kept ^ atTo] = before[own.source][other.offered ^ atFrom];
      }
    }
  return after;
}

TEST(Conversion, ShuffleRoundsMoveEveryElementToItsPlace) {
  std::mt19937_64 random(1);
  unsigned shuffled = 0;
  for (int round = 0; round < 400; ++round) {
    unsigned registers = 1 + random() % 3, elementBytes = 1u << random() % 3;
    std::vector<unsigned> dims{2, 3 + registers};
    Layout from = randomLayout(random, dims, registers, 5, round % 2 == 0);
    Layout to = randomLayout(random, dims, registers, 5, round % 2 == 0);
    Conversion plan = planConversion(from, to, elementBytes);
    if (plan.kind != Conversion::Kind::Shuffles)
      continue;
    ++shuffled;
    EXPECT_EQ(plan.shuffles.rounds * plan.shuffles.packedElements, 1u << registers);
    auto after = exchange(from, to, plan.shuffles);
    for (Bits lane = 0; lane < 32; ++lane)
      for (Bits reg = 0; reg < Bits(1) << registers; ++reg)
        ASSERT_EQ(after[lane][reg], to.applyFlat({.reg = reg, .lane = lane})) << from.str() << "\n" << to.str();
  }
  EXPECT_GT(shuffled, 50u);
}

TEST(Conversion, TheKindFollowsFromWhereElementsMove) {
  Layout rows({3, 6});
  rows.unit(In::Register, 0, 1).unit(In::Lane, 1, 5).unit(In::Warp, 0, 2, 1).unit(In::Register, 1, 1, 5);
  EXPECT_EQ(planConversion(rows, rows, 4).kind, Conversion::Kind::None);
  Layout swapped({3, 6});
  swapped.unit(In::Register, 1, 1, 5).unit(In::Register, 0, 1).unit(In::Lane, 1, 5).unit(In::Warp, 0, 2, 1);
  EXPECT_EQ(planConversion(rows, swapped, 4).kind, Conversion::Kind::Registers);
  Layout inWarp({3, 6});
  inWarp.unit(In::Register, 1, 2).unit(In::Lane, 1, 4, 2).unit(In::Lane, 0, 1).unit(In::Warp, 0, 2, 1);
  EXPECT_EQ(planConversion(rows, inWarp, 4).kind, Conversion::Kind::Shuffles);
  Layout across({3, 6});
  across.unit(In::Register, 0, 2).unit(In::Lane, 1, 5).unit(In::Warp, 1, 1, 5).unit(In::Warp, 0, 1, 2);
  Conversion shared = planConversion(rows, across, 4);
  EXPECT_EQ(shared.kind, Conversion::Kind::Shared);
  EXPECT_TRUE(shared.shared.memory.isSurjective());
}

TEST(Conversion, AccumulatorsBecomeTheNextProductsOperandInRegisters) {
  // C of two neighbouring m16n8 tiles is A of an m16n8k16: attention's second product needs no data movement.
  Layout twoTiles = product(mmaC(), Layout({0, 1}).unit(In::Register, 1, 1));
  EXPECT_EQ(planConversion(twoTiles, mmaA(16), 2).kind, Conversion::Kind::None);
}

}  // namespace
}  // namespace vortex::layout
