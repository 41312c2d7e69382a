// Reductions that pick one element, on the machine, against the reference interpreter, which combines all of them.
#include "target/gpu/tiles/testing/programs.h"

#include <gtest/gtest.h>

namespace vortex::target::gpu::tiles::testing {
namespace {

/// %w [m, n]: x [m, n] of `element` as f32. Wide elements are picked only where nothing else reads the row.
passes::testing::RandomProgram labelled(const std::vector<std::string>& result, const std::string& body,
                                        const std::string& element = "f32", const std::string& length = "m") {
  const std::string wide =
      element == "f32" ? "  %minus = arith.negf %t : tensor<?x?xf32>\n  %w = arith.negf %minus : tensor<?x?xf32>\n"
                       : "  %w = arith.extf %t : tensor<?x?x" + element + "> to tensor<?x?xf32>\n";
  passes::testing::RandomProgram program = rowProgram(result, wide + body, element);
  program.tensors.insert(program.tensors.begin() + 1, {"label", {length}, false, false});
  return program;
}

/// `%is`: the elements of %w whose place along dimension `dim` is `label`'s, in `bits` bits.
std::string isLabel(const std::string& dim, const std::string& bits, const std::string& predicate = "eq") {
  const std::string of = dim == "1" ? "%n" : "%m", type = "xi" + bits + ">";
  const std::string cast = bits == "8" ? R"(
  %l = arith.trunci %l32 : tensor<?xi32> to tensor<?xi8>
)"
                                       : R"(
  %c0i = arith.constant 0 : i32
  %zeros = vx.broadcast %c0i dims [] sizes(%m) : i32 -> tensor<?xi32>
  %l = arith.addi %l32, %zeros : tensor<?xi32>
)";
  return "  %l32 = vx.tile_load %label[%c0] sizes(%m) inbounds : !vx.view<?xi32, global> -> tensor<?xi32>\n" + cast +
         "  %at = vx.iota 0 sizes(" + of +
         ") -> tensor<?xindex>\n  %at64 = arith.index_castui %at : tensor<?xindex> to tensor<?xi64>\n" +
         "  %number = arith.trunci %at64 : tensor<?xi64> to tensor<?" + type +
         "\n  %numbers = vx.broadcast %number dims [" + dim + "] sizes(%m, %n) : tensor<?" + type + " -> tensor<?x?" +
         type + "\n  %labels = vx.broadcast %l dims [0] sizes(%m, %n) : tensor<?" + type + " -> tensor<?x?" + type +
         "\n  %is = arith.cmpi " + predicate + ", %labels, %numbers : tensor<?x?" + type + "\n";
}

std::string constant(const std::string& value) {
  return "  %other = arith.constant " + value +
         " : f32\n  %others = vx.broadcast %other dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>\n";
}

const std::string kChosen = "  %s = arith.select %is, %w, %others : tensor<?x?xi1>, tensor<?x?xf32>\n";
const std::string kPickedSum = "  %sum = vx.reduce addf %s dims [1] : tensor<?x?xf32> -> tensor<?xf32>\n";
const std::initializer_list<Sizes> kPickedLengths = {{3, 1, 1, 1},    {40, 7, 1, 1},    {5, 64, 1, 1}, {3, 1001, 1, 1},
                                                     {2, 8192, 1, 1}, {1, 24000, 1, 1}, {3, 0, 1, 1}};
const std::initializer_list<Sizes> kFewPicked = {{33, 9, 1, 1}, {3, 301, 1, 1}};

/// Beside reductions of whole rows, and what they give.
TEST(Picked, OfRowsThatAreReduced) {
  const std::string losses = isLabel("1", "32") + constant("0.0") + kChosen + kPickedSum + R"(
  %max = vx.reduce maxf %w dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %w, %maxb fastmath<contract> : tensor<?x?xf32>
  %e = math.exp %d fastmath<contract> : tensor<?x?xf32>
  %all = vx.reduce addf %e dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %log = math.log %all : tensor<?xf32>
  %some = arith.addf %max, %log : tensor<?xf32>
  %r = arith.subf %some, %sum : tensor<?xf32>
)";
  runSizes(labelled({"m"}, losses, "bf16"), kPickedLengths);
  runSizes(labelled({"m"}, losses, "bf16"), kFewPicked, {3, 5, true});
  runSizes(labelled({"m"}, losses), kFewPicked);
  // The element of a row that is computed from sums of it, beside the row.
  const std::string row = R"(
  %all = vx.reduce addf %w dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %allb = vx.broadcast %all dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %u = arith.addf %w, %allb : tensor<?x?xf32>
)" + isLabel("1", "32", "ne") +
                          constant("0.0") + "  %s = arith.select %is, %others, %u : tensor<?x?xi1>, tensor<?x?xf32>\n" +
                          kPickedSum + R"(
  %sumb = vx.broadcast %sum dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.subf %w, %sumb : tensor<?x?xf32>
)";
  const Tolerance tolerance = {.absolute = 2e-3, .relative = 2e-4};
  runSizes(labelled({"m", "n"}, row, "bf16"), kPickedLengths, {}, tolerance);
  runSizes(labelled({"m", "n"}, row, "bf16"), kFewPicked, {1, 3}, tolerance);
  runSizes(labelled({"m", "n"}, row), kFewPicked, {}, tolerance);
}

/// One over it tells 0.0 from -0.0. Numbers of 8 bits come again.
TEST(Picked, AloneAndByNumbersOfFewBits) {
  const std::string inverse = R"(
  %one = arith.constant 1.0 : f32
  %ones = vx.broadcast %one dims [] sizes(%m) : f32 -> tensor<?xf32>
  %r = arith.divf %ones, %sum : tensor<?xf32>
)";
  const std::string product =
      "  %zero = arith.constant -0.0 : f32\n  %zs = vx.broadcast %zero dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>\n"
      "  %u = arith.mulf %w, %zs : tensor<?x?xf32>\n";
  const std::string chosen = "  %s = arith.select %is, %u, %others : tensor<?x?xi1>, tensor<?x?xf32>\n";
  for (const char* bits : {"32", "8"}) {
    runSizes(labelled({"m"}, isLabel("1", bits) + constant("0.0") + kChosen + kPickedSum + inverse), kFewPicked);
    runSizes(labelled({"m"}, isLabel("1", bits) + constant("0.0") + product + chosen + kPickedSum + inverse),
             {{40, 1, 1, 1}, {9, 300, 1, 1}, {5, 0, 1, 1}});
    runSizes(labelled({"m"}, isLabel("1", bits) + constant("0xFF800000") + kChosen +
                                 "  %r = vx.reduce maxf %s dims [1] : tensor<?x?xf32> -> tensor<?xf32>\n"),
             kFewPicked, {0, 0, true});
  }
}

/// Along columns, whose places neighbouring threads ask for.
TEST(Picked, AlongColumns) {
  const std::string body = R"(
  %l32 = vx.tile_load %label[%c0] sizes(%n) inbounds : !vx.view<?xi32, global> -> tensor<?xi32>
  %at = vx.iota 0 sizes(%m) -> tensor<?xindex>
  %at64 = arith.index_castui %at : tensor<?xindex> to tensor<?xi64>
  %number = arith.trunci %at64 : tensor<?xi64> to tensor<?xi32>
  %numbers = vx.broadcast %number dims [0] sizes(%m, %n) : tensor<?xi32> -> tensor<?x?xi32>
  %labels = vx.broadcast %l32 dims [1] sizes(%m, %n) : tensor<?xi32> -> tensor<?x?xi32>
  %is = arith.cmpi eq, %numbers, %labels : tensor<?x?xi32>
)" + constant("0.0") + kChosen +
                           "  %r = vx.reduce addf %s dims [0] : tensor<?x?xf32> -> tensor<?xf32>\n";
  const auto program = labelled({"n"}, body, "f32", "n");
  runSizes(program, {{1, 1, 1, 1}, {30, 64, 1, 1}, {600, 9, 1, 1}, {0, 4, 1, 1}});
  runSizes(program, {{7, 5, 1, 1}, {6, 300, 1, 1}}, {1, 3});
}

/// Near misses: places that are compared with something of the row, other elements than zero, numbers that start elsewhere.
TEST(Picked, OrNot) {
  const std::string own =
      "  %at = vx.iota 0 sizes(%n) -> tensor<?xindex>\n  %at64 = arith.index_castui %at : tensor<?xindex> to "
      "tensor<?xi64>\n  %number = arith.trunci %at64 : tensor<?xi64> to tensor<?xi32>\n"
      "  %numbers = vx.broadcast %number dims [1] sizes(%m, %n) : tensor<?xi32> -> tensor<?x?xi32>\n"
      "  %whole = arith.fptosi %w : tensor<?x?xf32> to tensor<?x?xi32>\n  %is = arith.cmpi eq, %numbers, %whole : "
      "tensor<?x?xi32>\n";
  const std::string shifted =
      "  %l32 = vx.tile_load %label[%c0] sizes(%m) inbounds : !vx.view<?xi32, global> -> tensor<?xi32>\n"
      "  %at = vx.iota 0 sizes(%n) -> tensor<?xindex>\n  %at64 = arith.index_castui %at : tensor<?xindex> to "
      "tensor<?xi64>\n  %number = arith.trunci %at64 : tensor<?xi64> to tensor<?xi32>\n"
      "  %c3 = arith.constant 3 : i32\n  %threes = vx.broadcast %c3 dims [] sizes(%n) : i32 -> tensor<?xi32>\n"
      "  %moved = arith.addi %number, %threes : tensor<?xi32>\n"
      "  %numbers = vx.broadcast %moved dims [1] sizes(%m, %n) : tensor<?xi32> -> tensor<?x?xi32>\n"
      "  %labels = vx.broadcast %l32 dims [0] sizes(%m, %n) : tensor<?xi32> -> tensor<?x?xi32>\n"
      "  %is = arith.cmpi eq, %numbers, %labels : tensor<?x?xi32>\n";
  const std::string result = "  %r = arith.negf %sum : tensor<?xf32>\n";
  const std::initializer_list<Sizes> sizes = {{5, 4, 1, 1}, {40, 30, 1, 1}};
  runSizes(labelled({"m"}, own + constant("0.0") + kChosen + kPickedSum + result), sizes);
  runSizes(labelled({"m"}, shifted + constant("0.0") + kChosen + kPickedSum + result), sizes);
  runSizes(labelled({"m"}, isLabel("1", "32") + constant("0.5") + kChosen + kPickedSum + result), sizes);
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing
