#include "base/fresh_seed.h"
#include "size/evaluate.h"
#include "size/machine.h"

#include <gtest/gtest.h>

#include <random>

namespace {

using namespace vortex::size;

TEST(Machine, NumbersAreWrappedToTheirTypes) {
  std::mt19937_64 random{vortex::base::freshSeed()};
  Arena arena;
  for (unsigned bits : {8u, 16u, 32u, 64u})
    for (bool isSigned : {false, true}) {
      const Expr expr = wrapped(make(Op::Sub, arena.scalar(0), arena.scalar(1)), bits, isSigned);
      for (int round = 0; round < 2000; ++round) {
        const auto a = static_cast<int64_t>(random()) >> (random() % 64),
                   b = static_cast<int64_t>(random()) >> (random() % 64);
        const uint64_t difference = (static_cast<uint64_t>(a) - static_cast<uint64_t>(b)) << (64 - bits);
        const int64_t wanted = isSigned || bits == 64 ? static_cast<int64_t>(difference) >> (64 - bits)
                                                      : static_cast<int64_t>(difference >> (64 - bits));
        EXPECT_EQ(evaluate(expr, [&](const Node& node) { return node.argument == 0 ? a : b; }), wanted)
            << a << " - " << b << " in " << bits << " bits";
      }
    }
}

TEST(Machine, NumbersThatFitStayAsTheyAre) {
  Arena arena;
  const Expr extent = make(Op::Min, arena.dim(0, 0), 200);
  EXPECT_EQ(wrapped(extent, 8, false), extent);
  EXPECT_EQ(wrapped(extent, 32, true), extent);
  EXPECT_NE(wrapped(extent, 8, true), extent);
}

}  // namespace
