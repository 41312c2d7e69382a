// Rows of every length on the machine, against the reference interpreter.
#include "base/sanitized.h"
#include "target/gpu/tiles/testing/programs.h"

#include <gtest/gtest.h>
#include <span>

namespace vortex::target::gpu::tiles::testing {
namespace {

TEST(Rows, OfEveryLengthAreSoftmaxed) {
  runSizes(rowProgram({"m", "n"}, R"(
  %max = vx.reduce maxf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %t, %maxb : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %sum = vx.reduce addf %e dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %sumb = vx.broadcast %sum dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.divf %e, %sumb : tensor<?x?xf32>
)"),
           {{2, 8192, 1, 1},
            {3, 4096, 1, 1},
            {2, 5000, 1, 1},
            {2, 8193, 1, 1},
            {3, 2052, 1, 1},
            {2, 8188, 1, 1},
            {1, 8196, 1, 1},
            {2, 16388, 1, 1},
            {1, 60000, 1, 1},
            {5, 1000, 1, 1},
            {9, 36, 1, 1},
            {5, 1001, 1, 1},
            {70, 3, 1, 1},
            {300, 8, 1, 1},
            {33, 45, 1, 1},
            {2, 130, 1, 1},
            {2, 12287, 1, 1},
            {3, 16385, 1, 1},
            {2, 30001, 1, 1}});
}

TEST(Rows, OfEveryLengthKeepEachElement) {
  runSizes(rowProgram({"m", "n"}, R"(
  %max = vx.reduce maxf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.subf %t, %maxb : tensor<?x?xf32>
)"),
           {{3, 1001, 1, 1}, {2, 8192, 1, 1}, {2, 12285, 1, 1}, {3, 16385, 1, 1}, {2, 20000, 1, 1}, {70, 3, 1, 1}});
}

TEST(Rows, ThatStartAnywhereArePassedOn) {
  runSizes(rowProgram({"m", "n"}, "  %r = arith.addf %t, %t : tensor<?x?xf32>\n"),
           {{7, 1001, 1, 1}, {1, 3, 1, 1}, {40, 5, 1, 1}, {2, 4099, 1, 1}, {3, 64, 1, 1}});
}

/// Nine windows of x, each a little further, and y, whose rows lie as those of the result.
passes::testing::RandomProgram windows(const std::string& guard) {
  const std::string view = "!vx.view<?x?xf32, global>", tile = "tensor<?x?xf32>";
  passes::testing::RandomProgram program;
  program.tensors = {{"x", {"p", "b"}, true, false, "f32"},
                     {"y", {"m", "n"}, true, false, "f32"},
                     {"o", {"m", "n"}, true, true, "f32"}};
  program.body = "  %m = vx.dim %o, 0 : " + view + "\n  %n = vx.dim %o, 1 : " + view + "\n";
  for (std::string number : {"0", "1", "2"})
    program.body += "  %c" + number + " = arith.constant " + number + " : index\n";
  program.body += "  %s = vx.tile_load %y[%c0, %c0] sizes(%m, %n) inbounds : " + view + " -> " + tile + "\n";
  std::string sum = "%s";
  for (std::string row : {"0", "1", "2"})
    for (std::string column : {"0", "1", "2"}) {
      const std::string name = "%w" + row + column, next = "%s" + row + column;
      program.body += "  " + name + " = vx.tile_load %x[%c" + row + ", %c" + column + "] sizes(%m, %n) " + guard +
                      ": " + view + " -> " + tile + "\n  " + next + " = arith.addf " + sum + ", " + name + " : " +
                      tile + "\n";
      sum = next;
    }
  program.body += "  vx.tile_store " + sum + ", %o[%c0, %c0] inbounds : " + tile + ", " + view + "\n";
  return program;
}

TEST(Rows, OfWindowsThatAreShiftedAreLoadedOnce) {
  for (const char* guard : {"inbounds ", ""})
    for (const Layout& layout : {Layout{}, Layout{1, 0}, Layout{0, 3}})
      runSizes(windows(guard), {{1, 1, 3, 3}, {5, 7, 7, 9}, {9, 62, 11, 64}, {3, 1001, 5, 1003}, {2, 4099, 4, 4101}},
               layout);
  // Windows that reach past the end.
  runSizes(windows(""), {{5, 66, 5, 66}, {3, 1001, 4, 1002}});
}

/// Two tensors of which only the sum is needed, by both passes.
TEST(Rows, OfSumsComeIntoSharedMemoryAsSums) {
  const std::string view = "!vx.view<?x?xf32, global>", tile = "tensor<?x?xf32>";
  passes::testing::RandomProgram program;
  program.tensors = {{"x", {"m", "n"}, true, false, "f32"},
                     {"y", {"m", "n"}, true, false, "f32"},
                     {"o", {"m", "n"}, true, true, "f32"}};
  program.body =
      "  %c0 = arith.constant 0 : index\n  %m = vx.dim %o, 0 : " + view + "\n  %n = vx.dim %o, 1 : " + view + "\n";
  for (std::string name : {"x", "y"})
    program.body += "  %t" + name + " = vx.tile_load %" + name + "[%c0, %c0] sizes(%m, %n) inbounds : " + view +
                    " -> " + tile + "\n";
  program.body += R"(
  %h = arith.addf %tx, %ty : tensor<?x?xf32>
  %q = arith.mulf %h, %h : tensor<?x?xf32>
  %sum = vx.reduce maxf %q dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %sumb = vx.broadcast %sum dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.mulf %h, %sumb : tensor<?x?xf32>
  vx.tile_store %r, %o[%c0, %c0] inbounds : tensor<?x?xf32>, !vx.view<?x?xf32, global>
)";
  for (const Layout& layout : {Layout{}, Layout{1, 3}})
    runSizes(program, {{3, 100, 1, 1}, {2, 16384, 1, 1}, {1, 32768, 1, 1}, {2, 16391, 1, 1}, {1, 60001, 1, 1}}, layout);
}

/// As many rows as take several groups of a block, and fewer than one; tensors that start anywhere, with and without gaps between their rows.
TEST(Rows, ThatAreShortComeInGroups) {
  const std::string softmax = R"(
  %max = vx.reduce maxf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %t, %maxb : tensor<?x?xf32>
  %e = math.exp %d : tensor<?x?xf32>
  %sum = vx.reduce addf %e dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %sumb = vx.broadcast %sum dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.divf %e, %sumb : tensor<?x?xf32>
)";
  const std::initializer_list<Sizes> sizes = {{300, 1, 1, 1}, {1400, 3, 1, 1}, {141, 61, 1, 1}, {47, 99, 1, 1},
                                              {3, 127, 1, 1}, {1, 5, 1, 1},    {9, 511, 1, 1},  {5, 1023, 1, 1},
                                              {1, 1, 1, 1},   {1, 2, 1, 1},    {150, 64, 1, 1}, {20, 512, 1, 1}};
  const Layout layouts[] = {{}, {1, 0}, {4, 0}, {0, 2}, {0, 0, true}};
  for (const Layout& layout : llvm::ArrayRef(layouts).take_back(base::sampled(std::size(layouts))))
    runSizes(rowProgram({"m", "n"}, softmax), sizes, layout);
  for (const Layout& layout : {Layout{}, Layout{3, 0}, Layout{8, 1}})
    runSizes(rowProgram({"m", "n"}, R"(
  %w = arith.extf %t : tensor<?x?xbf16> to tensor<?x?xf32>
  %max = vx.reduce maxf %w dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.subf %w, %maxb : tensor<?x?xf32>
)",
                        "bf16"),
             sizes, layout);
  for (const Layout& layout : {Layout{}, Layout{1, 0}})
    runSizes(rowProgram({"m"}, "  %r = vx.reduce addf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>\n"), sizes,
             layout);
}

/// Rows and columns of x that do not exist, and what lies behind them does: x is a part of something larger.
TEST(Rows, ThatAreShortAndMissingAreZero) {
  const std::string view = "!vx.view<?x?xf32, global>";
  passes::testing::RandomProgram program;
  program.tensors = {
      {"x", {"p", "b"}, true, false, "f32"}, {"y", {"m", "n"}, true, false, "f32"}, {"o", {"m"}, true, true, "f32"}};
  program.body = "  %c0 = arith.constant 0 : index\n  %m = vx.dim %y, 0 : " + view + "\n  %n = vx.dim %y, 1 : " + view +
                 "\n  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) : " + view + " -> tensor<?x?xf32>\n" + R"(
  %r = vx.reduce addf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  vx.tile_store %r, %o[%c0] inbounds : tensor<?xf32>, !vx.view<?xf32, global>
)";
  runSizes(program, {{70, 61, 70, 61}, {70, 61, 41, 61}, {200, 30, 1, 30}});
  for (int64_t columns : {1, 20, 58})
    runSizes(program, {{70, 61, 70, columns}, {70, 61, 69, columns}}, {.shift = 0, .pad = 61 - columns});
}

/// Two after the other, which take the same shared memory.
TEST(Rows, ThatAreShortComeTwice) {
  const std::string view = "!vx.view<?x?xbf16, global>", tile = "tensor<?x?xbf16>";
  passes::testing::RandomProgram program;
  program.tensors = {{"x", {"m", "n"}, true, false, "bf16"},
                     {"y", {"p", "b"}, true, false, "bf16"},
                     {"o", {"m", "n"}, true, true, "bf16"},
                     {"u", {"p", "b"}, true, true, "bf16"}};
  program.body = "  %c0 = arith.constant 0 : index\n";
  for (const auto& [from, to] : {std::pair("x", "o"), {"y", "u"}})
    for (const std::string name : {from})
      program.body += "  %m" + name + " = vx.dim %" + name + ", 0 : " + view + "\n  %n" + name + " = vx.dim %" + name +
                      ", 1 : " + view + "\n  %t" + name + " = vx.tile_load %" + name + "[%c0, %c0] sizes(%m" + name +
                      ", %n" + name + ") inbounds : " + view + " -> " + tile + "\n  %s" + name +
                      " = vx.reduce maxf %t" + name + " dims [1] : " + tile + " -> tensor<?xbf16>\n  %b" + name +
                      " = vx.broadcast %s" + name + " dims [0] sizes(%m" + name + ", %n" + name +
                      ") : tensor<?xbf16> -> " + tile + "\n  %r" + name + " = arith.subf %t" + name + ", %b" + name +
                      " : " + tile + "\n  vx.tile_store %r" + name + ", %" + to + "[%c0, %c0] inbounds : " + tile +
                      ", " + view + "\n";
  runSizes(program, {{40, 61, 50, 100}, {3, 5, 200, 7}, {1, 61, 1, 127}}, {}, {.absolute = 0.04, .relative = 0.01});
}

/// Blocks of sums work on several groups as soon as there are blocks enough.
TEST(Rows, ThatAreShortComeInManyGroups) {
  runSizes(rowProgram({"m"}, "  %r = vx.reduce addf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>\n"),
           {{36001, 63, 1, 1}});
}

TEST(Rows, ThatStartAnywhereMeetOneRow) {
  runSizes(rowProgram({"m", "n"}, R"(
  %c0_ = arith.constant 0 : index
  %row = vx.tile_load %x[%c0_, %c0_] sizes(%n) {vx.guarded} : <?x?xf32, global> -> tensor<1x?xf32>
  %flat = vx.reshape %row sizes(%n) : tensor<1x?xf32> -> tensor<?xf32>
  %all = vx.broadcast %flat dims [1] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %r = arith.mulf %t, %all : tensor<?x?xf32>
)"),
           {{7, 1001, 1, 1}, {5, 7, 1, 1}, {3, 64, 1, 1}});
}

TEST(Rows, ThatStartAnywhereAreSummed) {
  runSizes(rowProgram({"m"}, "  %r = vx.reduce addf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>\n"),
           {{7, 1001, 1, 1},
            {1, 3, 1, 1},
            {40, 5, 1, 1},
            {300, 7, 1, 1},
            {9, 127, 1, 1},
            {9, 128, 1, 1},
            {9, 129, 1, 1},
            {2, 70001, 1, 1}});
}

/// One over it tells 0.0 from -0.0.
TEST(Rows, OfNothingSumToPositiveZero) {
  const std::string inverse = R"(
  %one = arith.constant 1.0 : f32
  %ones = vx.broadcast %one dims [] sizes(%m) : f32 -> tensor<?xf32>
  %r = arith.divf %ones, %sum : tensor<?xf32>
)";
  runSizes(rowProgram({"m"}, "  %sum = vx.reduce addf %t dims [1] : tensor<?x?xf32> -> tensor<?xf32>\n" + inverse),
           {{3, 0, 1, 1}, {1, 0, 1, 1}, {3, 1, 1, 1}, {5, 4, 1, 1}, {2, 5000, 1, 1}});
}

TEST(Rows, ThatStartAnywhereAreScannedInStep) {
  runSizes(rowProgram({"m", "n"}, "  %r = vx.scan addf %t dim 1 : tensor<?x?xf32>\n"),
           {{5, 5, 1, 1}, {70, 7, 1, 1}, {33, 13, 1, 1}, {9, 61, 1, 1}, {5, 1001, 1, 1}});
}

/// max, sum of exponentials and what follows, with `%w` the row in f32.
std::string widened(const std::string& element, const std::string& body) {
  const std::string from = element == "f32" ? "  %w = arith.negf %t : tensor<?x?xf32>\n"
                                            : "  %w = arith.extf %t : tensor<?x?x" + element + "> to tensor<?x?xf32>\n";
  return from + body;
}

const char* const kExponentials = R"(
  %max = vx.reduce maxf %w dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %maxb = vx.broadcast %max dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %w, %maxb fastmath<contract> : tensor<?x?xf32>
  %e = math.exp %d fastmath<contract> : tensor<?x?xf32>
  %sum = vx.reduce addf %e dims [1] : tensor<?x?xf32> -> tensor<?xf32>
)";

/// Lengths of every version, and one that does not fit shared memory.
const std::initializer_list<Sizes> kLengths = {{3, 1, 1, 1},     {70, 3, 1, 1},    {9, 7, 1, 1},     {33, 61, 1, 1},
                                               {17, 64, 1, 1},   {3, 1000, 1, 1},  {3, 1001, 1, 1},  {2, 4093, 1, 1},
                                               {2, 8192, 1, 1},  {1, 12296, 1, 1}, {2, 16384, 1, 1}, {1, 32768, 1, 1},
                                               {1, 50257, 1, 1}, {1, 65536, 1, 1}, {3, 0, 1, 1}};
const std::initializer_list<Sizes> kFewLengths = {{3, 1, 1, 1},    {9, 7, 1, 1},     {33, 61, 1, 1},   {3, 1001, 1, 1},
                                                  {2, 4099, 1, 1}, {1, 12289, 1, 1}, {1, 16411, 1, 1}, {2, 0, 1, 1},
                                                  {67, 256, 1, 1}, {5, 1024, 1, 1},  {3, 4096, 1, 1}};

struct Element {
  const char *from, *to;
  Tolerance tolerance;
  std::vector<Layout> layouts;
};
const Element kElements[] = {{"f32", "f32", {1e-30, 2e-5}, {{}, {1, 0}, {0, 3}, {3, 5, true}}},
                             {"bf16", "bf16", {1e-30, 1.2e-2}, {{}, {3, 5, true}}},
                             {"f16", "f16", {1e-7, 2e-3}, {{1, 0}}}};

void runLayouts(const std::vector<std::string>& result, const std::string& body, bool isScalar) {
  const size_t elements = base::kIsSanitized ? 1 : std::size(kElements);
  for (const Element& element : std::span(kElements).first(elements)) {
    SCOPED_TRACE(element.from);
    std::string rounded =
        element.from == std::string("f32") || isScalar
            ? "  %r = arith.negf %y : tensor<?xf32>\n"
            : std::string("  %r = arith.truncf %y : tensor<?x?xf32> to tensor<?x?x") + element.to + ">\n";
    if (!isScalar && element.from == std::string("f32"))
      rounded = "  %r = arith.negf %y : tensor<?x?xf32>\n";
    const auto program =
        rowProgram(result, widened(element.from, body) + rounded, element.from, isScalar ? "f32" : element.to);
    Tolerance tolerance = isScalar ? Tolerance{2e-5, 2e-5} : element.tolerance;
    for (const Layout& layout : element.layouts) {
      SCOPED_TRACE("shift " + std::to_string(layout.shift) + " pad " + std::to_string(layout.pad));
      runSizes(program, layout.shift || element.from != std::string("f32") || elements == 1 ? kFewLengths : kLengths,
               layout, tolerance);
      if (::testing::Test::HasFatalFailure())
        return;
    }
  }
}

TEST(Rows, OfEveryLengthAndPlaceAreSoftmaxedInOneReadingBeforeTheLast) {
  runLayouts({"m", "n"}, std::string(kExponentials) + R"(
  %sumb = vx.broadcast %sum dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %y = arith.divf %e, %sumb : tensor<?x?xf32>
)",
             false);
}

/// What is left out has a byte of its own, which takes no place beside what stays in registers.
TEST(Rows, OfWhichSomeElementsAreLeftOut) {
  for (std::string element : {"f32", "bf16"}) {
    const std::string view = "!vx.view<?x?x" + element + ", global>", tile = "tensor<?x?x" + element + ">";
    passes::testing::RandomProgram program;
    program.tensors = {{"x", {"m", "n"}, true, false, element},
                       {"k", {"m", "n"}, true, false, "i1"},
                       {"o", {"m", "n"}, true, true, element}};
    program.body =
        "  %c0 = arith.constant 0 : index\n  %m = vx.dim %o, 0 : " + view + "\n  %n = vx.dim %o, 1 : " + view +
        "\n  %t = vx.tile_load %x[%c0, %c0] sizes(%m, %n) inbounds : " + view + " -> " + tile +
        "\n  %p = vx.tile_load %k[%c0, %c0] sizes(%m, %n) inbounds : !vx.view<?x?xi1, global> -> tensor<?x?xi1>\n" +
        (element == "f32" ? "  %f = arith.negf %t : " + tile
                          : "  %f = arith.extf %t : " + tile + " to tensor<?x?xf32>") +
        R"(
  %none = arith.constant -50.0 : f32
  %nones = vx.broadcast %none dims [] sizes(%m, %n) : f32 -> tensor<?x?xf32>
  %w = arith.select %p, %f, %nones : tensor<?x?xi1>, tensor<?x?xf32>
)" + kExponentials +
        R"(
  %sumb = vx.broadcast %sum dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %y = arith.divf %e, %sumb : tensor<?x?xf32>
)" + (element == "f32" ? "  %r = arith.negf %y : " + tile : "  %r = arith.truncf %y : tensor<?x?xf32> to " + tile) +
        "\n  vx.tile_store %r, %o[%c0, %c0] inbounds : " + tile + ", " + view + "\n";
    for (const Layout& layout : {Layout{}, Layout{1, 3}})
      runSizes(program,
               {{67, 256, 1, 1},
                {3, 1000, 1, 1},
                {3, 1001, 1, 1},
                {3, 4096, 1, 1},
                {2, 8192, 1, 1},
                {1, 16384, 1, 1},
                {1, 32768, 1, 1}},
               layout, element == "f32" ? Tolerance{1e-30, 2e-5} : Tolerance{1e-30, 1.2e-2});
  }
}

TEST(Rows, OfWhichOnlySumsLeaveAreReadOnce) {
  runLayouts({"m"}, std::string(kExponentials) + R"(
  %low = vx.reduce minf %w dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %log = math.log %sum : tensor<?xf32>
  %all = arith.addf %max, %log : tensor<?xf32>
  %y = arith.subf %all, %low : tensor<?xf32>
)",
             true);
}

TEST(Rows, OfSquaresAroundTheirMeanComeIntoSharedMemoryWithTheFirstReading) {
  runLayouts({"m", "n"}, R"(
  %some = arith.constant 1000.0 : f32
  %counts = vx.broadcast %some dims [] sizes(%m) : f32 -> tensor<?xf32>
  %sum = vx.reduce addf %w dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %mean = arith.divf %sum, %counts : tensor<?xf32>
  %meanb = vx.broadcast %mean dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %d = arith.subf %w, %meanb : tensor<?x?xf32>
  %s = arith.mulf %d, %d : tensor<?x?xf32>
  %var = vx.reduce addf %s dims [1] : tensor<?x?xf32> -> tensor<?xf32>
  %part = arith.divf %var, %counts : tensor<?xf32>
  %varb = vx.broadcast %part dims [0] sizes(%m, %n) : tensor<?xf32> -> tensor<?x?xf32>
  %q = arith.mulf %s, %varb : tensor<?x?xf32>
  %y = arith.addf %q, %varb : tensor<?x?xf32>
)",
             false);
}

}  // namespace
}  // namespace vortex::target::gpu::tiles::testing
