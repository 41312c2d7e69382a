// Random programs: vxt run on the host against the reference interpreter, which runs the program before it is scheduled.
#include "base/fresh_seed.h"
#include "base/sanitized.h"
#include "target/gpu/tiles/testing/programs.h"

#include <gtest/gtest.h>

namespace vortex::target::gpu::tiles::testing {
namespace {

using passes::testing::RandomProgram;
using passes::testing::randomProgram;

void runOne(unsigned seed) {
  SCOPED_TRACE("VORTEX_TILE_PROGRAM=" + std::to_string(seed));
  std::mt19937 random(seed);
  RandomProgram program = randomProgram(random, 4 + random() % 14);
  Compiled compiled(program);
  SCOPED_TRACE(compiled.text());
  if (compiled.text().find("vx.dot") != std::string::npos ||
      compiled.error().find("flows through control flow") != std::string::npos)
    return;  // src/target/gpu/dot; docs/limits.md
  ASSERT_EQ(compiled.error(), "");
  static const int64_t extents[] = {1, 2, 3, 5, 8, 16, 17, 31, 40, 64, 90, 128};
  for (int round = 0; round < 3 && !::testing::Test::HasFatalFailure(); ++round) {
    Sizes sizes{extents[random() % 12], extents[random() % 12], extents[random() % 9],
                1 + static_cast<int64_t>(random() % 3)};
    if (round == 2)
      sizes.m = sizes.m / 4 * 4 + 4, sizes.n = sizes.n / 4 * 4 + 4, sizes.p = sizes.p / 4 * 4 + 4;
    SCOPED_TRACE("m n p b " + std::to_string(sizes.m) + " " + std::to_string(sizes.n) + " " + std::to_string(sizes.p) +
                 " " + std::to_string(sizes.b));
    compiled.check(sizes, random);
  }
}

/// Every kind of control flow that elements run by themselves, some inside others.
const char* const kLoopPerElement = R"(
  %two = arith.constant 2.0 : f32
  %twos = vx.broadcast %two dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c5 = arith.constant 5 : index
  %a, %b = scf.for %i = %c0 to %c5 step %c1 iter_args(%y = %t, %z = %twos) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
    %odd = vx.int remu %i, %c2 : index
    %isOdd = arith.cmpi eq, %odd, %c1 : index
    %next = scf.if %isOdd -> (tensor<?x?xf32>) {
      %u = arith.addf %y, %z : tensor<?x?xf32>
      scf.yield %u : tensor<?x?xf32>
    } else {
      %left, %v = scf.while (%k = %i, %w = %y) : (index, tensor<?x?xf32>) -> (index, tensor<?x?xf32>) {
        %more = arith.cmpi ugt, %k, %c0 : index
        scf.condition(%more) %k, %w : index, tensor<?x?xf32>
      } do {
      ^bb0(%k: index, %w: tensor<?x?xf32>):
        %s = arith.subf %w, %t : tensor<?x?xf32>
        %half = vx.int divu %k, %c2 : index
        scf.yield %half, %s : index, tensor<?x?xf32>
      }
      scf.yield %v : tensor<?x?xf32>
    }
    scf.yield %next, %y : tensor<?x?xf32>, tensor<?x?xf32>
  }
  %r = arith.addf %a, %b : tensor<?x?xf32>
)";

TEST(Control, IsRunByEveryElement) {
  runSizes(rowProgram({"m", "n"}, kLoopPerElement),
           {{7, 1001, 1, 1}, {1, 3, 1, 1}, {40, 5, 1, 1}, {2, 4099, 1, 1}, {3, 64, 1, 1}, {300, 300, 1, 1}});
}

/// Every row needs all of itself: rounds are phases.
const char* const kLoopOfLaunches = R"(
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %a, %k = scf.for %i = %c0 to %c3 step %c1 iter_args(%y = %t, %h = %c2) -> (tensor<?x?xf32>, index) {
    %max = vx.reduce maxf %y dims [1] : tensor<?x?xf32> -> tensor<?xf32>
    %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
    %d = arith.subf %t, %maxb : tensor<?x?xf32>
    %left, %e = scf.while (%l = %h, %w = %d) : (index, tensor<?x?xf32>) -> (index, tensor<?x?xf32>) {
      %more = arith.cmpi ugt, %l, %i : index
      scf.condition(%more) %l, %w : index, tensor<?x?xf32>
    } do {
    ^bb0(%l: index, %w: tensor<?x?xf32>):
      %col = vx.reduce addf %w dims [0] : tensor<?x?xf32> -> tensor<?xf32>
      %colb = vx.broadcast %col dims [1] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
      %z = math.tanh %colb : tensor<?x?xf32>
      %s = arith.subf %w, %z : tensor<?x?xf32>
      %less = arith.subi %l, %c1 : index
      scf.yield %less, %s : index, tensor<?x?xf32>
    }
    %two = arith.cmpi eq, %h, %c2 : index
    %f = scf.if %two -> (tensor<?x?xf32>) {
      %low = vx.reduce minf %e dims [0, 1] : tensor<?x?xf32> -> f32
      %lows = vx.broadcast %low dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
      %g = arith.addf %e, %lows : tensor<?x?xf32>
      scf.yield %g : tensor<?x?xf32>
    } else {
      scf.yield %e : tensor<?x?xf32>
    }
    %next = arith.addi %h, %i : index
    scf.yield %f, %next : tensor<?x?xf32>, index
  }
  %r = arith.addf %a, %t : tensor<?x?xf32>
)";

TEST(Control, IsRunByTheLaunch) {
  RandomProgram program = rowProgram({"m", "n"}, kLoopOfLaunches);
  const std::string text = [&] {
    Compiled compiled(program);
    return compiled.scheduled();
  }();
  EXPECT_NE(text.find("vx.loop"), std::string::npos) << text;
  EXPECT_NE(text.find("decides"), std::string::npos) << text;
  EXPECT_NE(text.find("vx.exchange"), std::string::npos) << text;
  runSizes(program, {{7, 101, 1, 1}, {1, 3, 1, 1}, {40, 5, 1, 1}, {3, 64, 1, 1}, {100, 300, 1, 1}});
}

TEST(Columns, AreSummedInPieces) {
  runSizes(rowProgram({"n"}, "  %r = vx.reduce addf %t dims [0] : tensor<?x?xf32> -> tensor<?xf32>\n"),
           {{700, 130, 1, 1}, {512, 64, 1, 1}, {1, 5, 1, 1}, {1500, 3, 1, 1}});
}

TEST(Columns, FewerThanThreadsAreSharedByThem) {
  runSizes(rowProgram({"n"}, R"(
  %s = vx.reduce addf %t dims [0] : tensor<?x?xf32> -> tensor<?xf32>
  %sq = arith.mulf %t, %t : tensor<?x?xf32>
  %q = vx.reduce addf %sq dims [0] : tensor<?x?xf32> -> tensor<?xf32>
  %top = vx.reduce maxf %t dims [0] : tensor<?x?xf32> -> tensor<?xf32>
  %p = arith.addf %s, %q : tensor<?xf32>
  %r = arith.addf %p, %top : tensor<?xf32>
)"),
           {{300, 64, 1, 1},
            {77, 67, 1, 1},
            {257, 1, 1, 1},
            {40, 128, 1, 1},
            {9, 129, 1, 1},
            {1, 512, 1, 1},
            {31, 516, 1, 1},
            {7, 1030, 1, 1},
            {5000, 12, 1, 1},
            {9, 4, 1, 1}});
}

TEST(Columns, OfThreeDimensionsAreSharedByThreads) {
  runSizes(rowProgram({"n"}, R"(
  %c3 = arith.constant 3 : index
  %k = vx.int divu %m, %c3 : index
  %k3 = arith.muli %k, %c3 : index
  %head = vx.tile_load %x[%c0, %c0] sizes(%k3, %n) inbounds : !vx.view<?x?xf32, global> -> tensor<?x?xf32>
  %cube = vx.reshape %head sizes(%k, %n) : tensor<?x?xf32> -> tensor<?x3x?xf32>
  %r = vx.reduce addf %cube dims [0, 1] : tensor<?x3x?xf32> -> tensor<?xf32>
)"),
           {{300, 64, 1, 1}, {30, 65, 1, 1}, {3, 5, 1, 1}, {600, 4, 1, 1}});
}

TEST(Transposes, GoThroughSharedMemory) {
  RandomProgram program =
      rowProgram({"n", "m"}, "  %r = vx.transpose %t [1, 0] : tensor<?x?xf32> -> tensor<?x?xf32>\n");
  runSizes(program, {{128, 192, 1, 1}, {100, 70, 1, 1}, {1, 300, 1, 1}, {65, 64, 1, 1}});
}

/// x [b, m, p, n] with other dimensions than the last in another order.
RandomProgram permutation(const std::vector<std::string>& result, const std::string& order) {
  RandomProgram program;
  program.tensors = {{"x", {"b", "m", "p", "n"}, true, false}, {"o", result, true, true}};
  program.body = R"(
  %c0 = arith.constant 0 : index
  %b = vx.dim %x, 0 : !vx.view<?x?x?x?xf32, global>
  %m = vx.dim %x, 1 : !vx.view<?x?x?x?xf32, global>
  %p = vx.dim %x, 2 : !vx.view<?x?x?x?xf32, global>
  %n = vx.dim %x, 3 : !vx.view<?x?x?x?xf32, global>
  %t = vx.tile_load %x[%c0, %c0, %c0, %c0] sizes(%b, %m, %p, %n) inbounds : !vx.view<?x?x?x?xf32, global> -> tensor<?x?x?x?xf32>
  %r = vx.transpose %t )" +
                 order +
                 R"( : tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf32>
  vx.tile_store %r, %o[%c0, %c0, %c0, %c0] inbounds : tensor<?x?x?x?xf32>, !vx.view<?x?x?x?xf32, global>
)";
  return program;
}

TEST(Permutations, MoveEveryElementToItsPlace) {
  std::initializer_list<Sizes> sizes = {{7, 24, 5, 3}, {1, 20, 1, 2}, {31, 1, 17, 1}, {2, 12, 67, 1}};
  runSizes(permutation({"b", "p", "m", "n"}, "[0, 2, 1, 3]"), sizes);
  runSizes(permutation({"m", "p", "b", "n"}, "[1, 2, 0, 3]"), sizes);
}

/// Teams of a warp whose rows have different numbers of aligned pieces.
TEST(Scans, OfRowsThatStartAnywhere) {
  RandomProgram program = rowProgram({"m", "n"}, R"(
  %a = vx.scan maxf %t dim 1 : tensor<?x?xf32>
  %h = math.tanh %a : tensor<?x?xf32>
  %r = vx.scan addf %h dim 1 exclusive : tensor<?x?xf32>
)");
  runSizes(
      program,
      {{40, 5, 1, 1}, {33, 7, 1, 1}, {70, 61, 1, 1}, {9, 130, 1, 1}, {5, 1001, 1, 1}, {3, 4097, 1, 1}, {3, 8, 1, 1}});
}

TEST(Scans, AlongOuterDimensionsAreSplitWhereColumnsAreFew) {
  RandomProgram program = rowProgram({"m", "n"}, R"(
  %r = vx.scan addf %t dim 0 : tensor<?x?xf32>
)");
  runSizes(program, {{700, 5, 1, 1}, {129, 300, 1, 1}, {128, 7, 1, 1}, {64, 1, 1, 1}, {1, 9, 1, 1}, {331, 64, 1, 1}});
}

TEST(Scans, ContinueFromBlockToBlock) {
  RandomProgram program = rowProgram({"m*n"}, R"(
  %mn = arith.muli %m, %n : index
  %f = vx.reshape %t sizes(%mn) : tensor<?x?xf32> -> tensor<?xf32>
  %r = vx.scan maxf %f dim 0 : tensor<?xf32>
)");
  runSizes(program, {{3, 4000, 1, 1}, {1, 9001, 1, 1}, {1, 1, 1, 1}});
}

TEST(RandomTiles, AgreeWithTheInterpreter) {
  if (const char* one = std::getenv("VORTEX_TILE_PROGRAM"))
    return runOne(static_cast<unsigned>(std::strtoul(one, nullptr, 10)));
  const char* more = std::getenv("VORTEX_TILE_PROGRAMS");
  unsigned count = more ? static_cast<unsigned>(std::strtoul(more, nullptr, 10)) : base::sampled(10);
  for (unsigned i = 0; i < count && !HasFatalFailure(); ++i)
    runOne(base::freshSeed());
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing
