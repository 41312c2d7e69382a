// Reductions of dimensions on both sides of one that stays, on the machine, against the reference interpreter.
#include "target/gpu/tiles/testing/programs.h"

#include <gtest/gtest.h>

namespace vortex::target::gpu::tiles::testing {
namespace {

using passes::testing::RandomProgram;

constexpr const char* kView = "!vx.view<?x?x?xf32, global>";

/// x [b, m, n] → o of the dimensions `result`.
RandomProgram program(const std::vector<std::string>& result, const std::string& body) {
  RandomProgram program;
  program.tensors = {{"x", {"b", "m", "n"}}, {"o", result, true, true}};
  std::string stored = "!vx.view<", offsets;
  for (size_t dim = 0; dim < result.size(); ++dim) {
    stored += "?x";
    offsets += dim ? ", %c0" : "%c0";
  }
  const std::string tile = "tensor" + stored.substr(8) + "f32>";
  program.body = "  %c0 = arith.constant 0 : index\n";
  for (const char* dim : {"b0", "m1", "n2"})
    program.body += std::string("  %") + dim[0] + " = vx.dim %x, " + dim[1] + " : " + kView + "\n";
  program.body += std::string("  %t = vx.tile_load %x[%c0, %c0, %c0] sizes(%b, %m, %n) inbounds : ") + kView +
                  " -> tensor<?x?x?xf32>\n" + body + "  vx.tile_store %r, %o[" + offsets + "] inbounds : " + tile +
                  ", " + stored + "f32, global>\n";
  return program;
}

const std::initializer_list<Sizes> kSizes = {{5, 7, 1, 3},    {1, 1, 1, 1},  {6, 64, 1, 4},
                                             {3, 1001, 1, 2}, {1, 33, 1, 9}, {300, 5, 1, 2},
                                             {2, 8192, 1, 3}, {4, 1, 1, 70}, {2, 4100, 1, 1}};

TEST(Channels, AreSummedRowByRow) {
  const auto sums = program({"m"}, "  %r = vx.reduce addf %t dims [0, 2] : tensor<?x?x?xf32> -> tensor<?xf32>\n");
  runSizes(sums, kSizes);
  runSizes(sums, {{5, 1001, 1, 3}, {6, 64, 1, 4}}, {1, 3});
}

TEST(Channels, AreNormed) {
  runSizes(program({"b", "m", "n"}, R"(
  %part = arith.constant 0.01 : f32
  %parts = vx.broadcast %part dims [] sizes(%m) : f32 -> tensor<?xf32>
  %sum = vx.reduce addf %t dims [0, 2] : tensor<?x?x?xf32> -> tensor<?xf32>
  %mean = arith.mulf %sum, %parts : tensor<?xf32>
  %kept = vx.reshape %mean sizes(%m) : tensor<?xf32> -> tensor<1x?x1xf32>
  %means = vx.broadcast %kept dims [0, 1, 2] sizes(%b, %m, %n) : tensor<1x?x1xf32> -> tensor<?x?x?xf32>
  %d = arith.subf %t, %means : tensor<?x?x?xf32>
  %q = arith.mulf %d, %d : tensor<?x?x?xf32>
  %squares = vx.reduce addf %q dims [0, 2] : tensor<?x?x?xf32> -> tensor<?xf32>
  %var = arith.mulf %squares, %parts : tensor<?xf32>
  %vars = vx.broadcast %var dims [1] sizes(%b, %m, %n) : tensor<?xf32> -> tensor<?x?x?xf32>
  %r = arith.mulf %d, %vars : tensor<?x?x?xf32>
)"),
           kSizes, {}, {2e-3, 2e-3});
}

TEST(Channels, OfFarDimensionsHaveMaxima) {
  runSizes(program({"m"}, "  %r = vx.reduce maxf %t dims [0, 2] : tensor<?x?x?xf32> -> tensor<?xf32>\n"),
           {{5, 7, 1, 3}, {6, 64, 1, 40}, {3, 0, 1, 2}});
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing
